/** One live room: its members, and its state as a tree, read every two seconds. */
import type { Response } from "../core/api.ts"
import { texts } from "../core/texts.ts"
import type { Load } from "../parts/load.ts"
import { livePollMillis, useRead } from "../parts/read.ts"
import { addressOf, useCurrentView } from "../parts/current-view.ts"
import { Empty, LiveMark, Loaded } from "../parts/load-states.tsx"
import { Badge, Copyable, Facts, Panel, Time, Title } from "../parts/basics.tsx"
import { Table } from "../parts/table.tsx"
import { Tree, useBefore } from "../parts/tree.tsx"

const { live } = texts
const { room: own } = live

const route = "GET /v1/projects/:projectId/environments/:env/realtime/rooms/:roomId"
type Room = Response<typeof route>["room"]
type Member = Room["members"][number]

const About = ({ room }: { readonly room: Room }) => (
  <Panel title={own.facts}>
    <Facts
      of={[
        [own.id, <Copyable text={room.id} label={own.id} />],
        [live.code, <Copyable text={room.code} label={live.code} />],
        [live.mode, room.mode],
        [live.seats, `${room.players} / ${room.maxPlayers}`],
        [live.opened, <Time at={room.createdAt} />],
        [own.transport, own.transports[room.transport]],
        [own.grace, own.seconds(room.graceSeconds)],
        room.runner !== null && [own.runner, <span class="mono">{room.runner}</span>]
      ]}
    />
  </Panel>
)

const Connection = ({ member }: { readonly member: Member }) => {
  if (member.connected) return <Badge kind="green">{own.connected}</Badge>
  if (member.absentSince === null) return <Badge>{own.reserved}</Badge>
  return (
    <span class="row">
      <Badge kind="amber">{own.awaySince}</Badge> <Time at={member.absentSince} />
    </span>
  )
}

const MemberState = ({ state }: { readonly state: Member["state"] }) => {
  const before = useBefore(state)
  if (Object.keys(state).length === 0) return <span class="soft">–</span>
  return <Tree value={state} before={before} />
}

const Members = ({ room }: { readonly room: Room }) => {
  const { env, project } = useCurrentView()
  return (
    <Panel title={live.members}>
      <Table
        rows={room.members}
        none={own.nobody}
        keyOf={({ id }) => id}
        columns={[
          {
            head: own.player,
            cell: ({ displayName, id }) => (
              <span class="row">
                <a class="name" href={addressOf(project, env, "players", id)}>
                  {displayName}
                </a>
                {id === room.hostId && <Badge kind="blue">{own.host}</Badge>}
              </span>
            )
          },
          { head: own.connection, cell: (member) => <Connection member={member} /> },
          { head: own.joined, kind: "minor", cell: ({ joinedAt }) => <Time at={joinedAt} /> },
          { head: own.ownState, cell: ({ state }) => <MemberState state={state} /> }
        ]}
      />
    </Panel>
  )
}

const Values = ({
  lead,
  title,
  value
}: {
  readonly title: string
  readonly lead?: string
  readonly value: Room["state"]
}) => {
  const before = useBefore(value)
  return (
    <Panel title={title} lead={lead}>
      <div class="body">
        {Object.keys(value).length === 0 ? (
          <p class="soft">{own.empty}</p>
        ) : (
          <Tree value={value} before={before} />
        )}
      </div>
    </Panel>
  )
}

const Details = ({ load, room }: { readonly room: Room; readonly load: Load<unknown> }) => (
  <>
    <Title text={own.title(room.code)}>
      {room.private && <Badge kind="amber">{live.private}</Badge>}
      {room.locked && <Badge>{live.locked}</Badge>}
      <LiveMark of={load} />
    </Title>
    {load.error?.code === "room_not_found" && <p class="notice amber">{own.last}</p>}
    <Members room={room} />
    <div class="grid">
      <Values title={own.state} lead={own.stateLead(room.version)} value={room.state} />
      <div class="stack">
        <About room={room} />
        <Values title={live.metadata} value={room.metadata} />
      </div>
    </div>
  </>
)

export const LiveRoom = ({ id }: { readonly id: string }) => {
  const { env, project } = useCurrentView()
  const load = useRead(route, { params: { roomId: id }, pollMillis: livePollMillis })
  const list = addressOf(project, env, "live")
  const isGone = load.error?.code === "room_not_found"
  return (
    <div class="stack">
      <a href={list}>{own.back}</a>
      {load.data === undefined && isGone ? (
        <>
          <Title text={own.closed} />
          <Empty title={own.closed} text={own.closedText}>
            <a class="button" href={list}>
              {own.back}
            </a>
          </Empty>
        </>
      ) : (
        <Loaded of={isGone ? { ...load, error: undefined } : load}>
          {({ room }) => <Details room={room} load={load} />}
        </Loaded>
      )}
    </div>
  )
}
