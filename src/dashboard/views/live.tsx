/** Live view of rooms, queues, channels, calls and runners, read every two seconds. */
import type { Response } from "../core/api.ts"
import { texts } from "../core/texts.ts"
import { addressOf, useCurrentView, useQueryValue } from "../parts/current-view.ts"
import { Choice } from "../parts/form.tsx"
import { Calls } from "./live-calls.tsx"
import { LiveRoom } from "./live-room.tsx"
import { Runners } from "./live-runners.tsx"
import { livePollMillis, useRead } from "../parts/read.ts"
import { Empty, LiveMark, Loaded } from "../parts/load-states.tsx"
import { Badge, count, JsonText, Panel, Time, Title } from "../parts/basics.tsx"
import { Table } from "../parts/table.tsx"
import type { ViewEntry } from "../parts/view-entry.ts"

const { live: own } = texts

const route = "GET /v1/projects/:projectId/environments/:env/realtime"
type View = Response<typeof route>
type Room = View["rooms"][number]

const Flags = ({ room }: { readonly room: Room }) => (
  <span class="row">
    {room.private && <Badge kind="amber">{own.private}</Badge>}
    {room.locked && <Badge>{own.locked}</Badge>}
    {!room.private && !room.locked && <Badge kind="green">{own.open}</Badge>}
  </span>
)

const Fill = ({ room }: { readonly room: Room }) => (
  <div class="row">
    <span>
      {room.players} / {room.maxPlayers}
    </span>
    {room.connected < room.players && (
      <span class="soft small">{own.away(room.players - room.connected)}</span>
    )}
  </div>
)

const Rooms = ({ rooms }: { readonly rooms: ReadonlyArray<Room> }) => {
  const { env, project } = useCurrentView()
  return (
    <Table
      rows={rooms}
      keyOf={({ id }) => id}
      columns={[
        {
          head: own.code,
          cell: ({ code, id }) => (
            <a class="mono name" href={addressOf(project, env, "live", id)}>
              {code}
            </a>
          )
        },
        { head: own.mode, cell: ({ mode }) => mode },
        { head: own.seats, cell: (room) => <Fill room={room} /> },
        { head: own.state, cell: (room) => <Flags room={room} /> },
        {
          head: own.host,
          kind: "minor",
          cell: ({ hostId }) =>
            hostId === null ? (
              <span class="soft">–</span>
            ) : (
              <a class="mono" href={addressOf(project, env, "players", hostId)}>
                {hostId.slice(-6)}
              </a>
            )
        },
        { head: own.opened, kind: "minor", cell: ({ createdAt }) => <Time at={createdAt} /> },
        {
          head: own.metadata,
          kind: "minor",
          cell: ({ metadata }) => <JsonText label={own.show} value={metadata} />
        }
      ]}
    />
  )
}

const Queues = ({ queues }: { readonly queues: View["queues"] }) => (
  <Panel title={own.queues} lead={own.queuesLead}>
    <Table
      rows={queues}
      none={own.noQueues}
      keyOf={({ mode }) => mode}
      columns={[
        { head: own.mode, cell: ({ mode }) => mode },
        { head: own.waiting, kind: "number", cell: ({ waiting }) => count(waiting) }
      ]}
    />
  </Panel>
)

const Channels = ({ channels }: { readonly channels: View["channels"] }) => (
  <Panel title={own.channels} lead={own.channelsLead}>
    <Table
      rows={channels}
      none={own.noChannels}
      keyOf={({ name }) => name}
      columns={[
        { head: own.channel, cell: ({ name }) => <span class="mono">{name}</span> },
        { head: own.members, kind: "number", cell: ({ members }) => count(members) },
        { head: own.inCall, kind: "number", cell: ({ voice }) => count(voice) }
      ]}
    />
  </Panel>
)

const RoomPanel = ({ view }: { readonly view: View }) => {
  const { env, project } = useCurrentView()
  const [mode, setMode] = useQueryValue("mode")
  const modes = Array.from(new Set(view.rooms.map((room) => room.mode))).toSorted()
  const shown = view.rooms.filter((room) => mode === "" || room.mode === mode)
  const options = [["", own.allModes] as const, ...modes.map((it) => [it, it] as const)]
  return (
    <Panel
      title={own.rooms(view.rooms.length)}
      actions={
        modes.length > 1 && (
          <Choice label={own.mode} hideLabel value={mode} options={options} onChoose={setMode} />
        )
      }
    >
      {shown.length === 0 ? (
        <Empty title={own.noRooms} text={own.noRoomsText}>
          <a class="button" href={addressOf(project, env, "playground")}>
            {texts.players.playground}
          </a>
        </Empty>
      ) : (
        <Rooms rooms={shown} />
      )}
    </Panel>
  )
}

const Lists = () => {
  const load = useRead(route, { pollMillis: livePollMillis })
  return (
    <div class="stack">
      <Title text={own.title} lead={own.lead}>
        {load.data !== undefined && (
          <span class="soft">{own.connections(load.data.connections)}</span>
        )}
        <LiveMark of={load} />
      </Title>
      <Loaded of={load}>
        {(view) => (
          <>
            {view.truncated && <p class="notice">{own.truncated}</p>}
            <RoomPanel view={view} />
            <div class="grid">
              <Queues queues={view.queues} />
              <Channels channels={view.channels} />
            </div>
            <Calls />
            <Runners />
          </>
        )}
      </Loaded>
    </div>
  )
}

/** The lists, or the room of the address. */
const Live = () => {
  const { item } = useCurrentView()
  return item === undefined ? <Lists /> : <LiveRoom id={item} />
}

export const page: ViewEntry = { word: "live", text: own.title, view: Live }
