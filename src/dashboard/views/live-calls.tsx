/** The voice calls of an environment, read every two seconds. */
import type { Response } from "../core/api.ts"
import { texts } from "../core/texts.ts"
import { addressOf, useCurrentView } from "../parts/current-view.ts"
import { livePollMillis, useRead } from "../parts/read.ts"
import { Loaded } from "../parts/load-states.tsx"
import { Badge, Panel, Time } from "../parts/basics.tsx"
import { Table } from "../parts/table.tsx"

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
  <Table
    rows={calls}
    none={own.none}
    keyOf={({ channel }) => channel}
    columns={[
      { head: live.channel, cell: ({ channel }) => <span class="mono">{channel}</span> },
      {
        head: own.mode,
        cell: ({ mode, relayOnly }) => own.modes[mode] + (relayOnly ? `, ${own.relayOnly}` : "")
      },
      {
        head: live.members,
        cell: ({ members }) => (
          <ul class="plain">
            {members.map((member) => (
              <Member key={member.playerId} member={member} />
            ))}
          </ul>
        )
      },
      { head: own.started, kind: "minor", cell: ({ startedAt }) => <Time at={startedAt} /> }
    ]}
  />
)

export const Calls = () => {
  const load = useRead(route, { pollMillis: livePollMillis })
  return (
    <Panel title={own.title} lead={own.lead}>
      <Loaded of={load}>
        {({ calls, truncated }) => (
          <>
            {truncated && <p class="notice">{own.truncated}</p>}
            <Rows calls={calls} />
          </>
        )}
      </Loaded>
    </Panel>
  )
}
