/** The React hooks, rendered without a page, against the whole service. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { createElement, StrictMode } from "react"
import { create } from "react-test-renderer"
import { type Channel, type Client, createClient, memoryStorage, type Room } from "#client/client"
import { useChannel, usePlayer, useRoom } from "#client/react/hooks"
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

/** Renders the game for the test. */
const rendered = (parts: Parts) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const elementOf = (shown: Parts) =>
        createElement(StrictMode, null, createElement(Game, shown))
      const tree = create(elementOf(parts))
      return {
        show: (next: Parts) => tree.update(elementOf(next)),
        text: () => String(tree.toJSON()),
        unmount: () => tree.unmount()
      }
    }),
    ({ unmount }) => Effect.sync(unmount)
  )

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
        const game = yield* rendered({ client })
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
})
