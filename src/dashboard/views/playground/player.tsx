/** One simulated player: a real client, buttons for its actions, and its frames. */
import { useEffect, useState } from "preact/hooks"
import { type Client, createClient, isError, type Room, type SessionStorage } from "#client/client"
import { texts } from "../../core/texts.ts"
import { Choice, Field } from "../../parts/form.tsx"
import { Badge, Button } from "../../parts/basics.tsx"
import { Tree, useBefore } from "../../parts/tree.tsx"
import { Frames } from "./frame-list.tsx"
import { FrameLog } from "./frames.ts"

const { playground: own } = texts

interface Given {
  readonly name: string
  readonly publishableKey: string
  readonly modes: ReadonlyArray<string>
  /** The code of the room that another player is in. */
  readonly code: string | undefined
  readonly onRoom: (code: string | undefined) => void
}

/** Keeps the guest of one simulated player in this browser, so that a visit makes no new one. */
const storageOf = (name: string): SessionStorage => {
  const keyOf = (key: string) => `svc-playground/${name}/${key}`
  return {
    getItem: (key) => localStorage.getItem(keyOf(key)),
    setItem: (key, value) => localStorage.setItem(keyOf(key), value),
    removeItem: (key) => localStorage.removeItem(keyOf(key))
  }
}

const makePlayer = ({ name, publishableKey }: Given) => {
  const log = new FrameLog()
  const client = createClient({
    baseUrl: location.origin,
    key: publishableKey,
    storage: storageOf(name),
    WebSocket: log.observed()
  })
  return { client, log }
}

/** Signs in as the guest of the last visit, and returns to a seat that is still reserved. */
const enter = async (client: Client, displayName: string): Promise<Room | undefined> => {
  await client.sessions.ensure({ displayName })
  const room = await client.rooms.resume()
  await client.ping()
  return room ?? undefined
}

/** Makes a client for as long as the player is shown; it changes the view with each event. */
const usePlayer = (given: Given) => {
  const { name, onRoom } = given
  const [player] = useState(() => makePlayer(given))
  const [room, setRoom] = useState<Room | undefined>(undefined)
  const [, show] = useState(0)
  useEffect(() => {
    const { client, log } = player
    const stop = client.on("status", () => show((before) => before + 1))
    enter(client, name)
      .then(setRoom)
      .catch((error: unknown) => log.add("note", String(error)))
    return () => {
      stop()
      client.close()
    }
  }, [])
  useEffect(() => {
    onRoom(room?.code)
    if (room === undefined) return
    const refresh = () => show((before) => before + 1)
    const stops = [
      room.on("change", refresh),
      room.on("closed", () => setRoom(undefined)),
      room.on("warn", ({ code }) => player.log.add("note", code))
    ]
    return () => {
      for (const stop of stops) stop()
    }
  }, [room])
  /** Runs an action and records the reason of its failure. */
  const run = (action: (client: Client) => Promise<unknown>) => {
    action(player.client).catch((error: unknown) =>
      player.log.add("note", isError(error) ? `${error.code}: ${error.message}` : String(error))
    )
  }
  return { ...player, room, run, setRoom }
}

type Playing = ReturnType<typeof usePlayer>

const Outside = ({
  code,
  modes,
  playing
}: {
  readonly playing: Playing
  readonly modes: ReadonlyArray<string>
  readonly code: string | undefined
}) => {
  const [mode, setMode] = useState(modes[0] ?? "default")
  const [typed, setTyped] = useState("")
  const { run, setRoom } = playing
  const joined = typed === "" ? (code ?? "") : typed
  return (
    <div class="stack">
      <div class="row">
        <Choice
          label={own.mode}
          hideLabel
          value={mode}
          options={modes.map((it) => [it, it])}
          onChoose={setMode}
        />
        <Button
          kind="primary"
          onClick={() => run(async ({ rooms }) => setRoom(await rooms.quickMatch(mode)))}
        >
          {own.match}
        </Button>
        <Button onClick={() => run(async ({ rooms }) => setRoom(await rooms.create({ mode })))}>
          {own.create}
        </Button>
      </div>
      <div class="row frame-tools">
        <Field label={own.code} value={joined} onValue={setTyped} autocomplete="off" />
        <Button
          disabled={joined === ""}
          onClick={() => run(async ({ rooms }) => setRoom(await rooms.join(joined)))}
        >
          {own.join}
        </Button>
      </div>
    </div>
  )
}

const Inside = ({ playing, room }: { readonly playing: Playing; readonly room: Room }) => {
  const [text, setText] = useState("hello")
  const { run, setRoom } = playing
  const { snapshot } = room
  const before = useBefore(snapshot)
  const round = Number(room.state["round"] ?? 0)
  return (
    <div class="stack">
      <p>
        {own.inRoom} <code>{room.code}</code> <Badge>{room.mode}</Badge>{" "}
        {room.isHost && <Badge kind="blue">{own.host}</Badge>}
      </p>
      <ul class="row plain">
        {room.players.map(({ connected, displayName, id }) => (
          <li key={id}>
            <Badge kind={connected ? "green" : "amber"}>{displayName}</Badge>
          </li>
        ))}
      </ul>
      <div class="row frame-tools">
        <Field label={own.message} value={text} onValue={setText} />
        <Button onClick={() => room.send("chat", text)}>{own.send}</Button>
      </div>
      <div class="row">
        <Button onClick={() => room.setState({ round: round + 1 })}>{own.round(round + 1)}</Button>
        <Button onClick={() => room.setMyState({ ready: true })}>{own.ready}</Button>
        <Button
          onClick={() =>
            run(async () => {
              await room.leave()
              setRoom(undefined)
            })
          }
        >
          {own.leave}
        </Button>
      </div>
      <details>
        <summary class="small">{own.view}</summary>
        <Tree value={{ ...snapshot }} before={{ ...before }} />
      </details>
    </div>
  )
}

const namesOf = (room: Room | undefined): ReadonlyMap<string, string> =>
  new Map(room?.players.map(({ displayName, id }) => [id, displayName]))

export const Player = (given: Given) => {
  const playing = usePlayer(given)
  const { client, log, room } = playing
  const { latency, status } = client
  return (
    <section class="panel" aria-label={given.name}>
      <header>
        <h2>{given.name}</h2>
        <Badge kind={status === "online" ? "green" : "amber"}>{own.states[status]}</Badge>
        {latency !== null && <span class="soft small">{own.latency(latency)}</span>}
        <span class="grow break" />
        <Button kind="small" onClick={() => playing.run((it) => it.ping())}>
          {own.ping}
        </Button>
        <Button kind="small" onClick={() => log.drop()}>
          {own.drop}
        </Button>
        <Button
          kind="small"
          onClick={() => playing.run(({ sessions }) => sessions.guest({ displayName: given.name }))}
        >
          {own.newGuest}
        </Button>
      </header>
      <div class="body">
        {room === undefined ? (
          <Outside playing={playing} modes={given.modes} code={given.code} />
        ) : (
          <Inside playing={playing} room={room} />
        )}
      </div>
      <Frames log={log} name={given.name} names={namesOf(room)} />
    </section>
  )
}
