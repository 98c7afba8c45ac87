/** The voice calls of an environment, read every two seconds. */
import type { Response } from "../core/api.ts"
import { texts } from "../core/texts.ts"
import { addressOf, useCurrentView } from "../parts/current-view.ts"
import { livePollMillis, useRead } from "../parts/read.ts"
import { Loaded } from "../parts/load-states.tsx"
import { Badge, Panel, Time } from "../parts/basics.tsx"

const { live } = texts
const { calls: own } = live

const route = "GET /v1/projects/:projectId/environments/:env/realtime/calls"
type Call = Response<typeof route>["calls"][number]

const Member = ({ member }: { readonly member: Call["members"][number] }) => {
  const { env, project } = useCurrentView()
  const { away, playerId, speaks } = member
  return (
    <li class="row">
      <a class="mono" href={addressOf(project, env, "players", playerId)}>
        {playerId.slice(-6)}
      </a>
      {away ? (
        <Badge kind="amber">{own.away}</Badge>
      ) : (
        <Badge kind={speaks ? "green" : ""}>{speaks ? own.speaks : own.muted}</Badge>
      )}
    </li>
  )
}

const Rows = ({ calls }: { readonly calls: ReadonlyArray<Call> }) => (
  <div class="table-wrap" tabIndex={0}>
    <table>
      <thead>
        <tr>
          <th scope="col">{live.channel}</th>
          <th scope="col">{own.mode}</th>
          <th scope="col">{live.members}</th>
          <th scope="col" class="minor">
            {own.started}
          </th>
        </tr>
      </thead>
      <tbody>
        {calls.map(({ channel, members, mode, relayOnly, startedAt }) => (
          <tr key={channel}>
            <td class="mono">{channel}</td>
            <td>
              {own.modes[mode]}
              {relayOnly && `, ${own.relayOnly}`}
            </td>
            <td>
              <ul class="plain">
                {members.map((member) => (
                  <Member key={member.playerId} member={member} />
                ))}
              </ul>
            </td>
            <td class="minor">
              <Time at={startedAt} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)

export const Calls = () => {
  const load = useRead(route, { pollMillis: livePollMillis })
  return (
    <Panel title={own.title} lead={own.lead}>
      <Loaded of={load}>
        {({ calls, truncated }) => (
          <>
            {truncated && <p class="notice">{own.truncated}</p>}
            {calls.length === 0 ? <p class="body soft">{own.none}</p> : <Rows calls={calls} />}
          </>
        )}
      </Loaded>
    </Panel>
  )
}
