/** One live room: its members, and its state as a tree, read every two seconds. */
import { ask, type Response } from "../core/api.ts"
import { texts } from "../core/texts.ts"
import { type Load, useLoad } from "../parts/load.ts"
import { addressOf, useCurrentView } from "../parts/current-view.ts"
import { Empty, LiveMark, Loaded } from "../parts/load-states.tsx"
import { Badge, Copyable, Panel, Time, Title } from "../parts/basics.tsx"
import { Tree, useBefore } from "../parts/tree.tsx"

const { live } = texts
const { room: own } = live

const route = "GET /v1/projects/:projectId/environments/:env/realtime/rooms/:roomId"
type Room = Response<typeof route>["room"]
type Member = Room["members"][number]

const pollMillis = 2000

const Facts = ({ room }: { readonly room: Room }) => (
  <Panel title={own.facts}>
    <dl class="facts body">
      <dt>{own.id}</dt>
      <dd>
        <Copyable text={room.id} label={own.id} />
      </dd>
      <dt>{live.code}</dt>
      <dd>
        <Copyable text={room.code} label={live.code} />
      </dd>
      <dt>{live.mode}</dt>
      <dd>{room.mode}</dd>
      <dt>{live.seats}</dt>
      <dd>
        {room.players} / {room.maxPlayers}
      </dd>
      <dt>{live.opened}</dt>
      <dd>
        <Time at={room.createdAt} />
      </dd>
      <dt>{own.transport}</dt>
      <dd>{own.transports[room.transport]}</dd>
      <dt>{own.grace}</dt>
      <dd>{own.seconds(room.graceSeconds)}</dd>
      {room.runner !== null && (
        <>
          <dt>{own.runner}</dt>
          <dd class="mono">{room.runner}</dd>
        </>
      )}
    </dl>
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

const MemberRow = ({ isHost, member }: { readonly member: Member; readonly isHost: boolean }) => {
  const { env, project } = useCurrentView()
  const before = useBefore(member.state)
  return (
    <tr>
      <td>
        <span class="row">
          <a class="name" href={addressOf(project, env, "players", member.id)}>
            {member.displayName}
          </a>
          {isHost && <Badge kind="blue">{own.host}</Badge>}
        </span>
      </td>
      <td>
        <Connection member={member} />
      </td>
      <td class="minor">
        <Time at={member.joinedAt} />
      </td>
      <td>
        {Object.keys(member.state).length === 0 ? (
          <span class="soft">–</span>
        ) : (
          <Tree value={member.state} before={before} />
        )}
      </td>
    </tr>
  )
}

const Members = ({ room }: { readonly room: Room }) => (
  <Panel title={live.members}>
    {room.members.length === 0 ? (
      <p class="body soft">{own.nobody}</p>
    ) : (
      <div class="table-wrap" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">{own.player}</th>
              <th scope="col">{own.connection}</th>
              <th scope="col" class="minor">
                {own.joined}
              </th>
              <th scope="col">{own.ownState}</th>
            </tr>
          </thead>
          <tbody>
            {room.members.map((member) => (
              <MemberRow key={member.id} member={member} isHost={member.id === room.hostId} />
            ))}
          </tbody>
        </table>
      </div>
    )}
  </Panel>
)

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

const Details = ({ load, room }: { readonly room: Room; readonly load: Load<Room> }) => (
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
        <Facts room={room} />
        <Values title={live.metadata} value={room.metadata} />
      </div>
    </div>
  </>
)

export const LiveRoom = ({ id }: { readonly id: string }) => {
  const { env, params, project } = useCurrentView()
  const load = useLoad(
    `${project.id}/${env}/rooms/${id}`,
    async (signal) => (await ask(route, { params: { ...params, roomId: id }, signal })).room,
    pollMillis
  )
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
          {(room) => <Details room={room} load={load} />}
        </Loaded>
      )}
    </div>
  )
}
