/** The typed client's channels: against the real service, and against a scripted one for disconnects. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { WebSocket } from "ws"
import type { ChannelEvent } from "#rpc/channels/frames"
import { applyChannelEvent, viewOf } from "#client/channel-view"
import {
  type Channel,
  type ChannelEvents,
  createClient,
  isError,
  memoryStorage
} from "#client/client"
import { TestApp } from "#testing/app"
import { manage, uniqueName } from "../support/channel-calls.ts"
import {
  refuse,
  reply,
  type ScriptedSocket,
  scriptedService
} from "../support/client/scripted-service.ts"
import { call, lost, rejection } from "../support/client/waits.ts"
import { AppLive } from "../support/service.ts"

const ask = <A>(promise: () => Promise<A>) => Effect.promise(promise)

/** Collects the events of a channel from now on. */
const listen = <Name extends keyof ChannelEvents>(channel: Channel, name: Name) => {
  const heard: Array<ChannelEvents[Name]> = []
  let hears: (event: ChannelEvents[Name]) => void = () => undefined
  channel.on(name, (event) => {
    heard.push(event)
    hears(event)
  })
  const next = Effect.callback<ChannelEvents[Name]>((resume) => {
    const [first] = heard
    if (first !== undefined) return resume(Effect.succeed(first))
    hears = (event) => resume(Effect.succeed(event))
  })
  return { heard, next }
}

/** Waits until the view of a channel is as expected. */
const until = (channel: Channel, expected: () => boolean) =>
  Effect.callback<void>((resume) => {
    if (expected()) return resume(Effect.void)
    const stop = channel.on("change", () => {
      if (expected()) resume(Effect.void)
    })
    return Effect.sync(stop)
  })

const player = (id: string) => ({ id, displayName: id, joinedAt: "2026-11-20T21:00:00.000Z" })

/** The settings of a channel, as the service sends them. */
const joined = (members: ReadonlyArray<string> = [], name = "lobby") =>
  ({
    t: "channel_joined",
    channel: {
      name,
      managed: true,
      ownerId: null,
      join: "anyone",
      send: "anyone",
      open: false,
      maxMembers: 100,
      voice: null,
      createdAt: "2026-11-20T21:00:00.000Z"
    },
    members: members.map(player),
    voice: null,
    canSend: true,
    mutedUntil: null
  }) as const satisfies ChannelEvent

describe("the view of a channel", () => {
  const ids = (events: ReadonlyArray<ChannelEvent>) =>
    events.reduce(applyChannelEvent, viewOf(joined(["ann", "ben"]))).members.map(({ id }) => id)

  it("applies joins and leaves, single and in batches", () => {
    const channel = "lobby"
    assert.deepStrictEqual(
      ids([
        { t: "channel_player_joined", channel, player: player("cat") },
        { t: "channel_player_left", channel, playerId: "ann", reason: "left" },
        {
          t: "channel_players",
          channel,
          joined: [player("ann"), player("cat")],
          left: [
            { playerId: "ben", reason: "timeout" },
            { playerId: "nobody", reason: "left" }
          ]
        }
      ]),
      ["ann", "cat"]
    )
    assert.deepStrictEqual(ids([joined(["zoe"])]), ["zoe"])
  })

  it("shows the new name of a member", () => {
    const event = { t: "player_updated", player: { id: "ann", displayName: "New" } } as const
    const view = applyChannelEvent(viewOf(joined(["ann", "ben"])), { ...event, channel: "lobby" })
    assert.deepStrictEqual(
      view.members.map(({ displayName }) => displayName),
      ["New", player("ben").displayName]
    )
  })
})

const newPlayer = Effect.fnUntraced(function* (displayName: string) {
  const { publishableKey: key, url: baseUrl } = yield* TestApp
  const sockets: Array<WebSocket> = []
  class CuttableSocket extends WebSocket {
    constructor(url: string) {
      super(url)
      sockets.push(this)
    }
  }
  const options = { baseUrl, key, storage: memoryStorage(), WebSocket: CuttableSocket }
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => createClient(options)),
    (made) => Effect.sync(() => made.close())
  )
  yield* ask(() => client.sessions.guest({ displayName }))
  const cut = Effect.sync(() => {
    for (const socket of sockets) socket.terminate()
  })
  return { client, cut }
})

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("client channels", (it) => {
  it.effect("joins a channel, sends messages, moderates and leaves", () =>
    Effect.gen(function* () {
      const { client: ada } = yield* newPlayer("Ada")
      const { client: bob } = yield* newPlayer("Bob")
      const mine = yield* ask(() => ada.channels.create({ maxMembers: 2 }))
      assert.isTrue(mine.isOwner)
      const his = yield* ask(() => bob.channels.join(mine.name))
      assert.deepStrictEqual(
        his.members.map(({ displayName }) => displayName),
        ["Ada", "Bob"]
      )
      const messages = listen(mine, "message")
      his.send("chat", "hello")
      assert.deepInclude(yield* messages.next, { type: "chat", data: "hello" })
      const [, second] = his.members
      const playerId = second?.id ?? ""
      yield* ask(() => mine.moderate({ op: "mute", playerId }))
      yield* until(his, () => !his.canSend)
      assert.isTrue(isError(yield* rejection(() => his.confirmed.send("chat", "?")), "muted"))
      const notOwner = yield* rejection(() => his.moderate({ op: "kick", playerId }))
      assert.isTrue(isError(notOwner, "owner_only"))
      const closed = listen(his, "closed")
      yield* ask(() => mine.moderate({ op: "kick", playerId }))
      assert.deepStrictEqual(yield* closed.next, { reason: "kicked" })
      assert.deepStrictEqual(bob.channels.current, [])
      const again = yield* ask(() => bob.channels.join(mine.name))
      yield* ask(() => again.leave())
      assert.deepStrictEqual(again.closed, { reason: "left" })
      assert.isTrue(isError(yield* rejection(() => again.confirmed.send("x")), "not_in_channel"))
      const nowhere = yield* rejection(() => bob.channels.join("nowhere"))
      assert.isTrue(isError(nowhere, "channel_not_found"))
    })
  )

  it.effect("creates a channel for the first of the players who agree on its name", () =>
    Effect.gen(function* () {
      const players = yield* Effect.all([newPlayer("Ada"), newPlayer("Bob"), newPlayer("Cleo")])
      const name = `@${yield* uniqueName}`
      const channels = yield* Effect.forEach(
        players,
        ({ client }) => ask(() => client.channels.joinOrCreate(name, { maxMembers: 3 })),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(channels.filter(({ isOwner }) => isOwner).length, 1)
      for (const channel of channels) {
        yield* until(channel, () => channel.members.length === 3)
        assert.strictEqual(channel.settings.maxMembers, 3)
      }
      const { client: dora } = yield* newPlayer("Dora")
      const full = yield* rejection(() => dora.channels.joinOrCreate(name))
      assert.isTrue(isError(full, "channel_full"))
    })
  )

  it.effect("joins a client's channels again after a disconnect, unseen by other members", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const name = yield* uniqueName
      yield* manage(app, "PUT", name, {})
      const { client: ada } = yield* newPlayer("Ada")
      const { client: bob, cut } = yield* newPlayer("Bob")
      const one = yield* ask(() => ada.channels.join(name))
      const comings = listen(one, "player_joined")
      const two = yield* ask(() => bob.channels.join(name))
      yield* until(one, () => one.members.length === 2)
      assert.deepInclude(yield* comings.next, { channel: name })
      const changes = listen(one, "player_left")
      const back = listen(two, "reconnected")
      yield* cut
      yield* back.next
      const messages = listen(one, "message")
      yield* ask(() => two.confirmed.send("chat", "back"))
      assert.deepInclude(yield* messages.next, { data: "back" })
      assert.isEmpty(changes.heard)
    })
  )
})

describe("joinOrCreate", () => {
  it.effect("joins the channel that another player creates meanwhile", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const client = yield* service.client()
      const entering = yield* call(() => client.channels.joinOrCreate("@duo", { maxMembers: 2 }))
      const socket = yield* service.socket
      yield* socket.next
      yield* socket.welcome()
      const first = yield* socket.next
      assert.deepInclude(first, { t: "channelJoin", channel: "@duo" })
      yield* socket.say(refuse(first, "channel_not_found"))
      const create = yield* socket.next
      assert.deepInclude(create, { t: "channelCreate", channel: "@duo", maxMembers: 2 })
      yield* socket.say(refuse(create, "channel_exists"))
      const second = yield* socket.next
      assert.deepInclude(second, { t: "channelJoin", channel: "@duo" })
      yield* socket.say(joined(["ann"], "@duo"), reply(second, { channel: "@duo" }))
      assert.strictEqual((yield* Fiber.join(entering)).name, "@duo")
    }).pipe(Effect.scoped)
  )
})

describe("a disconnect", () => {
  const inLobby = Effect.fnUntraced(function* () {
    const service = yield* scriptedService
    const client = yield* service.client()
    const joining = yield* call(() => client.channels.join("lobby"))
    const socket = yield* service.socket
    yield* socket.next
    yield* socket.welcome()
    const frame = yield* socket.next
    assert.deepStrictEqual([frame["t"], frame["channel"]], ["channelJoin", "lobby"])
    yield* socket.say(joined(["ann"]), reply(frame, { channel: "lobby" }))
    return { channel: yield* Fiber.join(joining), client, service, socket }
  })

  const rejoin = Effect.fnUntraced(function* (socket: ScriptedSocket) {
    yield* socket.next
    yield* socket.welcome()
    return yield* socket.next
  })

  it.effect("closes a channel that no longer exists after a disconnect", () =>
    Effect.gen(function* () {
      const { channel, client, service, socket } = yield* inLobby()
      const closed = listen(channel, "closed")
      yield* socket.close(1012, "draining")
      yield* lost(client)
      const next = yield* service.socket
      const frame = yield* rejoin(next)
      assert.deepStrictEqual([frame["t"], frame["channel"]], ["channelJoin", "lobby"])
      yield* next.say(refuse(frame, "channel_not_found"))
      assert.deepStrictEqual(yield* closed.next, { reason: "channel_not_found" })
      assert.deepStrictEqual(client.channels.current, [])
    }).pipe(Effect.scoped)
  )

  it.effect("closes every channel when the client does not reconnect", () =>
    Effect.gen(function* () {
      const { channel, socket } = yield* inLobby()
      const closed = listen(channel, "closed")
      yield* socket.close(4004, "replaced")
      assert.deepInclude(yield* closed.next, { reason: "replaced", code: 4004 })
    }).pipe(Effect.scoped)
  )
})
