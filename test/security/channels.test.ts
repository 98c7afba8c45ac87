/**
 * Threats to channels (spec section 4.5): every act of moderation from every role, acts on oneself, and
 * those who are put out and come back at the same moment.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestApp } from "#testing/app"
import { at, newPlayer, type OnlinePlayer, request, type TestTarget } from "#testing/players"
import type { SocketClient } from "#testing/socket-client"
import { anonymous, code, manage, uniqueName } from "../support/channel-calls.ts"
import { AppLive } from "../support/service.ts"

const ops = [
  "invite",
  "uninvite",
  "allowSend",
  "disallowSend",
  "mute",
  "unmute",
  "kick",
  "ban",
  "unban"
] as const
type Op = (typeof ops)[number]

/** Where an act shows in the server's report, and whether it puts the player there or takes it away. */
const traces: Readonly<Record<Op, readonly [list: string, present: boolean]>> = {
  invite: ["allow", true],
  uninvite: ["allow", false],
  allowSend: ["speakers", true],
  disallowSend: ["speakers", false],
  mute: ["muted", true],
  unmute: ["muted", false],
  kick: ["members", false],
  ban: ["banned", true],
  unban: ["banned", false]
}

/** What undoes an act, so that it has something to do. */
const before: Readonly<Partial<Record<Op, Op>>> = {
  uninvite: "invite",
  disallowSend: "allowSend",
  unmute: "mute",
  unban: "ban"
}

/** What takes back an act, done or refused. */
const after: Readonly<Partial<Record<Op, Op>>> = {
  invite: "uninvite",
  uninvite: "uninvite",
  allowSend: "disallowSend",
  disallowSend: "disallowSend",
  mute: "unmute",
  unmute: "unmute",
  ban: "unban",
  unban: "unban"
}

const report = (app: TestTarget, channel: string) =>
  Effect.map(manage(app, "GET", channel), ({ body }) => body)

const isListed = (shown: unknown, list: string, id: string) => {
  const entries = at(shown, list)
  return (
    Array.isArray(entries) &&
    entries.some((one) => one === id || at(one, "playerId") === id || at(one, "id") === id)
  )
}

const byServer = (app: TestTarget, key: string, channel: string, op: string, playerId: string) =>
  request(`${app.url}/v1/realtime/channels/${channel}/moderate`, {
    headers: { "x-svc-key": key },
    body: { op, playerId }
  })

const join = ({ socket }: { readonly socket: SocketClient }, channel: string) =>
  socket.ask({ t: "channelJoin", channel })

/** A channel of a player's, and everybody who may try. */
const club = Effect.gen(function* () {
  const app = yield* TestApp
  const owner = yield* newPlayer(app, "Owner")
  const made = yield* owner.socket.ask({ t: "channelCreate" })
  const channel = String(at(made, "data", "channel"))
  const member = yield* newPlayer(app, "Member")
  const banned = yield* newPlayer(app, "Banned")
  for (const player of [member, banned]) yield* join(player, channel)
  yield* owner.socket.ask({ t: "channelModerate", channel, op: "ban", playerId: banned.id })
  return { app, channel, owner, member, banned }
})

layer(AppLive, { timeout: "60 seconds", excludeTestServices: true })("moderation", (it) => {
  it.effect(
    "is the owner's and the server's: 9 acts by 7 roles",
    () =>
      Effect.gen(function* () {
        const { app, banned, channel, member, owner } = yield* club
        const outsider = yield* newPlayer(app, "Outsider")
        const nobody = { socket: yield* anonymous(app) }
        const by =
          ({ socket }: { readonly socket: SocketClient }) =>
          (op: Op, playerId: string) =>
            Effect.map(
              socket.ask({ t: "channelModerate", channel, op, playerId }),
              (reply) => code(reply) ?? "ok"
            )
        const server = (key: string) => (op: Op, playerId: string) =>
          Effect.map(byServer(app, key, channel, op, playerId), ({ body, status }) =>
            status === 200 ? "ok" : at(body, "error", "code")
          )
        const roles = [
          ["member", by(member), "owner_only"],
          ["outsider", by(outsider), "owner_only"],
          ["banned", by(banned), "owner_only"],
          ["anonymous", by(nobody), "player_required"],
          ["a publishable key", server(app.publishableKey), "secret_key_required"],
          ["owner", by(owner), "ok"],
          ["the server", server(app.secretKey), "ok"]
        ] as const
        const target = yield* newPlayer(app, "Target")
        const wrong: Array<string> = []
        for (const op of ops) {
          const [list, present] = traces[op]
          for (const [role, act, expected] of roles) {
            const first = before[op]
            if (first !== undefined) yield* by(owner)(first, target.id)
            if (op === "kick") yield* join(target, channel)
            const earlier = yield* report(app, channel)
            const told = yield* act(op, target.id)
            const later = yield* report(app, channel)
            const done = isListed(later, list, target.id) === present
            const right =
              expected === "ok" ? done : JSON.stringify(earlier) === JSON.stringify(later)
            if (told !== expected || !right)
              wrong.push(`${op} by ${role}: ${String(told)}, ${done}`)
            const undo = after[op]
            if (undo !== undefined) yield* by(owner)(undo, target.id)
          }
        }
        assert.deepStrictEqual(wrong, [])
      }),
    60_000
  )

  it.effect("is undone by nobody for himself, not even from a channel of his own", () =>
    Effect.gen(function* () {
      const { app, banned, channel, member, owner } = yield* club
      yield* owner.socket.ask({ t: "channelModerate", channel, op: "mute", playerId: member.id })
      yield* banned.socket.ask({ t: "channelCreate" })
      const cases: ReadonlyArray<readonly [OnlinePlayer, Op]> = [
        [banned, "unban"],
        [banned, "invite"],
        [member, "unmute"],
        [member, "allowSend"]
      ]
      for (const [player, op] of cases) {
        const act = { t: "channelModerate", channel, op, playerId: player.id }
        assert.strictEqual(code(yield* player.socket.ask(act)), "owner_only", op)
      }
      assert.strictEqual(code(yield* join(banned, channel)), "channel_banned")
      const send = { t: "channelSend", channel, type: "x" }
      assert.strictEqual(code(yield* member.socket.ask(send)), "muted")
      const shown = yield* report(app, channel)
      assert.isTrue(isListed(shown, "banned", banned.id))
    })
  )

  it.effect(
    "outruns those who come back: 25 bans and 25 kicks against joins and messages",
    () =>
      Effect.gen(function* () {
        const { app, channel, member, owner } = yield* club
        const act = (op: Op) =>
          owner.socket.ask({ t: "channelModerate", channel, op, playerId: member.id })
        for (let round = 0; round < 25; round++) {
          for (const op of ["kick", "ban"] as const) {
            yield* join(member, channel)
            const [told] = yield* Effect.all(
              [
                act(op),
                join(member, channel),
                member.socket.ask({ t: "channelSend", channel, type: "late" }),
                join(member, channel)
              ],
              { concurrency: "unbounded" }
            )
            assert.isUndefined(code(told))
          }
          assert.isFalse(isListed(yield* report(app, channel), "members", member.id))
          assert.strictEqual(code(yield* join(member, channel)), "channel_banned")
          yield* act("unban")
        }
        assert.isUndefined(code(yield* join(member, channel)))
      }),
    60_000
  )

  it.effect("of an anonymous listener's: a channel that is not open takes none", () =>
    Effect.gen(function* () {
      const { app, channel } = yield* club
      const managed = yield* uniqueName
      yield* manage(app, "PUT", managed, {})
      const listener = yield* anonymous(app)
      for (const name of [channel, managed]) {
        const refused = yield* listener.ask({ t: "channelJoin", channel: name })
        assert.strictEqual(code(refused), "player_required")
      }
    })
  )

  it.effect("names: a client takes none that is the server's", () =>
    Effect.gen(function* () {
      const { app, owner } = yield* club
      const managed = `@${(yield* uniqueName).toLowerCase()}`
      yield* manage(app, "PUT", managed, { send: "server" })
      const cases = [
        [managed, "channel_exists"],
        ["plain", "invalid_frame"],
        ["@", "invalid_frame"],
        ["@Upper", "invalid_frame"],
        ["@a b", "invalid_frame"],
        ["@../x", "invalid_frame"],
        [`@${"a".repeat(64)}`, "invalid_frame"],
        ["", "invalid_frame"]
      ] as const
      for (const [channel, expected] of cases) {
        const made = yield* owner.socket.ask({ t: "channelCreate", channel })
        assert.strictEqual(code(made), expected, channel)
      }
      assert.isUndefined(code(yield* join(owner, managed)))
      const act = { t: "channelModerate", channel: managed, op: "allowSend", playerId: owner.id }
      assert.strictEqual(code(yield* owner.socket.ask(act)), "owner_only")
    })
  )
})
