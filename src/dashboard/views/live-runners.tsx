/** The runners of the cluster, read every two seconds; nothing where only the operator may see them. */
import type { Response } from "../core/api.ts"
import { texts } from "../core/texts.ts"
import { livePollMillis, useRead } from "../parts/read.ts"
import { Loaded } from "../parts/load-states.tsx"
import { Badge, bytes, count, Panel, Time } from "../parts/basics.tsx"
import { Table } from "../parts/table.tsx"

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

const Rows = ({ runners }: { readonly runners: ReadonlyArray<Runner> }) => {
  const latest = Math.max(...runners.map(({ reportedAt }) => Date.parse(reportedAt)))
  return (
    <Table
      rows={runners}
      none={own.none}
      keyOf={({ node }) => node}
      columns={[
        {
          head: own.runner,
          cell: ({ address }) => <span class="mono">{address ?? own.alone}</span>
        },
        { head: own.state, cell: (runner) => <State runner={runner} latest={latest} /> },
        { head: own.load, cell: ({ load }) => <Load value={load} /> },
        { head: own.rooms, kind: "number", cell: ({ rooms }) => count(rooms) },
        { head: own.players, kind: "number", cell: ({ players }) => count(players) },
        { head: own.connections, kind: "number minor", cell: (it) => count(it.connections) },
        { head: own.memory, kind: "number minor", cell: (it) => bytes(it.memoryBytes) },
        { head: own.release, kind: "minor", cell: ({ release }) => release },
        { head: own.started, kind: "minor", cell: ({ startedAt }) => <Time at={startedAt} /> }
      ]}
    />
  )
}

export const Runners = () => {
  const load = useRead(route, { pollMillis: livePollMillis })
  if (load.error?.code === "not_found") return null
  return (
    <Panel title={own.title} lead={own.lead}>
      <Loaded of={load}>{({ runners }) => <Rows runners={runners} />}</Loaded>
    </Panel>
  )
}
