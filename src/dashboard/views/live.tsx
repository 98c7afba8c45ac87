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
    <div class="table-wrap" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">{own.code}</th>
            <th scope="col">{own.mode}</th>
            <th scope="col">{own.seats}</th>
            <th scope="col">{own.state}</th>
            <th scope="col" class="minor">
              {own.host}
            </th>
            <th scope="col" class="minor">
              {own.opened}
            </th>
            <th scope="col" class="minor">
              {own.metadata}
            </th>
          </tr>
        </thead>
        <tbody>
          {rooms.map((room) => (
            <tr key={room.id}>
              <td>
                <a class="mono name" href={addressOf(project, env, "live", room.id)}>
                  {room.code}
                </a>
              </td>
              <td>{room.mode}</td>
              <td>
                <Fill room={room} />
              </td>
              <td>
                <Flags room={room} />
              </td>
              <td class="minor">
                {room.hostId === null ? (
                  <span class="soft">–</span>
                ) : (
                  <a class="mono" href={addressOf(project, env, "players", room.hostId)}>
                    {room.hostId.slice(-6)}
                  </a>
                )}
              </td>
              <td class="minor">
                <Time at={room.createdAt} />
              </td>
              <td class="minor">
                <JsonText label={own.show} value={room.metadata} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

const Queues = ({ queues }: { readonly queues: View["queues"] }) => (
  <Panel title={own.queues} lead={own.queuesLead}>
    {queues.length === 0 ? (
      <p class="body soft">{own.noQueues}</p>
    ) : (
      <table>
        <thead>
          <tr>
            <th scope="col">{own.mode}</th>
            <th scope="col" class="number">
              {own.waiting}
            </th>
          </tr>
        </thead>
        <tbody>
          {queues.map(({ mode, waiting }) => (
            <tr key={mode}>
              <td>{mode}</td>
              <td class="number">{count(waiting)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    )}
  </Panel>
)

const Channels = ({ channels }: { readonly channels: View["channels"] }) => (
  <Panel title={own.channels} lead={own.channelsLead}>
    {channels.length === 0 ? (
      <p class="body soft">{own.noChannels}</p>
    ) : (
      <table>
        <thead>
          <tr>
            <th scope="col">{own.channel}</th>
            <th scope="col" class="number">
              {own.members}
            </th>
            <th scope="col" class="number">
              {own.inCall}
            </th>
          </tr>
        </thead>
        <tbody>
          {channels.map(({ members, name, voice }) => (
            <tr key={name}>
              <td class="mono">{name}</td>
              <td class="number">{count(members)}</td>
              <td class="number">{count(voice)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    )}
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
