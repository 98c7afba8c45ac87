/** The React hooks, rendered without a page, against the whole service. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { createElement, type FunctionComponent, StrictMode, useEffect } from "react"
import { create } from "react-test-renderer"
import {
  type Channel,
  type Client,
  createClient,
  isError,
  memoryStorage,
  type Room
} from "#client/client"
import { useChannel, useEnteredRoom, usePlayer, useRoom } from "#client/react/hooks"
import { TestApp } from "#testing/app"
import { configure } from "#testing/players"
import { AppLive } from "../support/service.ts"

interface State {
  readonly round: number
}

const ask = <A>(run: () => Promise<A>) => Effect.promise(run)

const newClient = Effect.gen(function* () {
  const { publishableKey: key, url: baseUrl } = yield* TestApp
  return yield* Effect.acquireRelease(
    Effect.sync(() => createClient({ baseUrl, key, storage: memoryStorage() })),
    (client) => Effect.sync(() => client.close())
  )
})

/** Props of the game; each part shows its line of text. */
interface Parts {
  readonly client: Client
  readonly room?: Room<State> | null
  readonly channel?: Channel | null
}

const roomText = (view: ReturnType<typeof useRoom<State, object, object>>): string => {
  if (view === null) return "no room"
  if (view.closed !== undefined) return `left: ${view.closed.reason}`
  const names = view.players.map(({ displayName }) => displayName).join(" ")
  return `${names} in round ${view.state.round ?? 1}${view.isConnected ? "" : "?"}`
}

const channelText = (view: ReturnType<typeof useChannel>): string => {
  if (view === null) return "no channel"
  if (view.closed !== undefined) return `left: ${view.closed.reason}`
  return view.messages.map(({ data }) => String(data)).join(" ") || "silence"
}

const Game = ({ channel = null, client, room = null }: Parts) => {
  const player = usePlayer(client)
  const game = useRoom(room)
  const chat = useChannel(channel)
  return [player?.displayName ?? "nobody", roomText(game), channelText(chat)].join("; ")
}

/** Renders a component for the test. */
const rendered = <Props extends object>(Component: FunctionComponent<Props>, parts: Props) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const elementOf = (shown: Props) =>
        createElement(StrictMode, null, createElement(Component, shown))
      const tree = create(elementOf(parts))
      return {
        show: (next: Props) => tree.update(elementOf(next)),
        text: () => String(tree.toJSON()),
        unmount: () => tree.unmount()
      }
    }),
    ({ unmount }) => Effect.sync(unmount)
  )

/** Props of a lobby, which enters a room of this mode. */
interface LobbyParts {
  readonly client: Client
  readonly mode: string
  readonly onEffect: () => void
}

const Lobby = ({ client, mode, onEffect }: LobbyParts) => {
  const { error, room } = useEnteredRoom(
    (signal) => client.rooms.create<State>({ mode }, { signal }),
    [client, mode]
  )
  const view = useRoom(room)
  useEffect(onEffect, [onEffect])
  return isError(error) ? error.code : `${room?.mode ?? "no mode"}: ${roomText(view)}`
}

const turn = () => new Promise<void>((resolve) => void setImmediate(resolve))

/** Waits until the game shows this text. */
const shows = Effect.fnUntraced(function* (game: { readonly text: () => string }, text: string) {
  for (let turns = 0; turns < 100_000 && game.text() !== text; turns++) yield* ask(turn)
  assert.strictEqual(game.text(), text)
})

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("React hooks", (it) => {
  it.effect(
    "renders the player, the room and the channel by React hooks, and again after each change",
    () =>
      Effect.gen(function* () {
        yield* configure(yield* TestApp, {
          features: { multiplayer: true, realtimeChannels: true }
        })
        const client = yield* newClient
        const other = yield* newClient
        const game = yield* rendered<Parts>(Game, { client })
        yield* shows(game, "nobody; no room; no channel")
        yield* ask(() => client.sessions.ensure({ displayName: "Ada" }))
        yield* ask(() => other.sessions.ensure({ displayName: "Bob" }))
        yield* shows(game, "Ada; no room; no channel")
        const room = yield* ask(() => client.rooms.create<State>({ mode: "default" }))
        const channel = yield* ask(() => client.channels.create({ channel: "@chat" }))
        game.show({ client, room, channel })
        yield* shows(game, "Ada; Ada in round 1; silence")
        const joined = yield* ask(() => other.rooms.join<State>({ roomId: room.id }))
        yield* ask(() => joined.confirmed.setState({ round: 2 }))
        yield* shows(game, "Ada; Ada Bob in round 2; silence")
        const chat = yield* ask(() => other.channels.join("@chat"))
        chat.send("chat", "Hello!")
        yield* shows(game, "Ada; Ada Bob in round 2; Hello!")
        yield* ask(() => room.leave())
        yield* ask(() => channel.leave())
        yield* shows(game, "Ada; left: left; left: left")
        yield* ask(() => client.sessions.logout())
        yield* shows(game, "nobody; left: left; left: left")
      })
  )

  it.effect(
    "enters a room once by a React hook in strict mode, and leaves it for the next and at the end",
    () =>
      Effect.gen(function* () {
        const duel = { key: "duel", minPlayers: 2, maxPlayers: 2 }
        const party = { key: "party", minPlayers: 2, maxPlayers: 8 }
        yield* configure(yield* TestApp, {
          features: { multiplayer: true },
          multiplayer: { modes: [duel, party] }
        })
        const client = yield* newClient
        yield* ask(() => client.sessions.ensure({ displayName: "Ada" }))
        const sent: Array<string> = []
        const create = client.rooms.create.bind(client.rooms)
        const counting: Client = {
          ...client,
          rooms: Object.assign(Object.create(client.rooms), {
            create: (...words: Parameters<typeof create>) => {
              sent.push(words[0].mode)
              return create(...words)
            }
          })
        }
        let effects = 0
        const onEffect = () => void effects++
        const parts = { client: counting, onEffect }
        const lobby = yield* rendered(Lobby, { ...parts, mode: "duel" })
        yield* shows(lobby, "duel: Ada in round 1")
        assert.deepStrictEqual([effects, sent], [2, ["duel"]])
        const first = client.rooms.current
        lobby.show({ ...parts, mode: "party" })
        yield* shows(lobby, "party: Ada in round 1")
        assert.deepStrictEqual(first?.closed, { reason: "left" })
        const second = client.rooms.current
        lobby.unmount()
        yield* shows({ text: () => second?.closed?.reason ?? "in the room" }, "left")
      })
  )

  it.effect("shows by a React hook why a room was not entered", () =>
    Effect.gen(function* () {
      const client = yield* newClient
      yield* ask(() => client.sessions.ensure())
      const lobby = yield* rendered(Lobby, { client, mode: "chess", onEffect: () => undefined })
      yield* shows(lobby, "mode_not_found")
    })
  )
})
