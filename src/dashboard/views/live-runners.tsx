/** The runners of the cluster, read every two seconds; nothing where only the operator may see them. */
import type { Response } from "../core/api.ts"
import { texts } from "../core/texts.ts"
import { livePollMillis, useRead } from "../parts/read.ts"
import { Loaded } from "../parts/load-states.tsx"
import { Badge, bytes, count, Panel, Time } from "../parts/basics.tsx"

const { runners: own } = texts.live

const route = "GET /v1/projects/:projectId/environments/:env/realtime/runners"
type Runner = Response<typeof route>["runners"][number]

/** A runner reports every two seconds: one that is this far behind the others does not answer. */
const silentMillis = 5000

const State = ({ latest, runner }: { readonly runner: Runner; readonly latest: number }) => {
  if (runner.draining) return <Badge kind="amber">{own.draining}</Badge>
  const isSilent = latest - Date.parse(runner.reportedAt) > silentMillis
  return <Badge kind={isSilent ? "red" : "green"}>{isSilent ? own.silent : own.running}</Badge>
}

const Load = ({ value }: { readonly value: number }) => {
  const percent = Math.round(value * 100)
  return (
    <div class="load">
      <meter min={0} max={100} high={70} value={percent} aria-label={own.load} />
      <span>{percent} %</span>
    </div>
  )
}

const Row = ({ latest, runner }: { readonly runner: Runner; readonly latest: number }) => (
  <tr>
    <td class="mono">{runner.address ?? own.alone}</td>
    <td>
      <State runner={runner} latest={latest} />
    </td>
    <td>
      <Load value={runner.load} />
    </td>
    <td class="number">{count(runner.rooms)}</td>
    <td class="number">{count(runner.players)}</td>
    <td class="number minor">{count(runner.connections)}</td>
    <td class="number minor">{bytes(runner.memoryBytes)}</td>
    <td class="minor">{runner.release}</td>
    <td class="minor">
      <Time at={runner.startedAt} />
    </td>
  </tr>
)

const Rows = ({ runners }: { readonly runners: ReadonlyArray<Runner> }) => {
  const latest = Math.max(...runners.map(({ reportedAt }) => Date.parse(reportedAt)))
  return (
    <div class="table-wrap" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">{own.runner}</th>
            <th scope="col">{own.state}</th>
            <th scope="col">{own.load}</th>
            <th scope="col" class="number">
              {own.rooms}
            </th>
            <th scope="col" class="number">
              {own.players}
            </th>
            <th scope="col" class="number minor">
              {own.connections}
            </th>
            <th scope="col" class="number minor">
              {own.memory}
            </th>
            <th scope="col" class="minor">
              {own.release}
            </th>
            <th scope="col" class="minor">
              {own.started}
            </th>
          </tr>
        </thead>
        <tbody>
          {runners.map((runner) => (
            <Row key={runner.node} runner={runner} latest={latest} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

export const Runners = () => {
  const load = useRead(route, { pollMillis: livePollMillis })
  if (load.error?.code === "not_found") return null
  return (
    <Panel title={own.title} lead={own.lead}>
      <Loaded of={load}>
        {({ runners }) =>
          runners.length === 0 ? <p class="body soft">{own.none}</p> : <Rows runners={runners} />
        }
      </Loaded>
    </Panel>
  )
}
