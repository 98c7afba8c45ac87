/**
 * Attacks on channel moderation: every operation by every role, operations on oneself, and removed players
 * who rejoin at the same moment.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestApp } from "#testing/app"
import { at, newPlayer, type OnlinePlayer, request, type TestTarget } from "#testing/players"
import type { SocketClient } from "#testing/socket-client"
import { connectAnonymously, errorCode, manage, uniqueName } from "../support/channel-calls.ts"
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

/** The list that an operation changes, and whether it adds the player to it or removes it. */
const effects: Readonly<Record<Op, readonly [list: string, present: boolean]>> = {
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

/** The operation to run first, so that the tested one changes something. */
const preparations: Readonly<Partial<Record<Op, Op>>> = {
  uninvite: "invite",
  disallowSend: "allowSend",
  unmute: "mute",
  unban: "ban"
}

/** The operation that restores the previous state. */
const reversals: Readonly<Partial<Record<Op, Op>>> = {
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
    entries.some((entry) => [entry, at(entry, "playerId"), at(entry, "id")].includes(id))
  )
}

const byServer = (app: TestTarget, key: string, channel: string, op: string, playerId: string) =>
  request(`${app.url}/v1/realtime/channels/${channel}/moderate`, {
    headers: { "x-svc-key": key },
    body: { op, playerId }
  })

const join = ({ socket }: { readonly socket: SocketClient }, channel: string) =>
  socket.request({ t: "channelJoin", channel })

/** A player's channel with its owner, a member and a banned player. */
const makeChannel = Effect.gen(function* () {
  const app = yield* TestApp
  const owner = yield* newPlayer(app, "Owner")
  const made = yield* owner.socket.request({ t: "channelCreate" })
  const channel = String(at(made, "data", "channel"))
  const member = yield* newPlayer(app, "Member")
  const banned = yield* newPlayer(app, "Banned")
  for (const player of [member, banned]) yield* join(player, channel)
  yield* owner.socket.request({ t: "channelModerate", channel, op: "ban", playerId: banned.id })
  return { app, channel, owner, member, banned }
})

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })(
  "channel moderation",
  (it) => {
    it.effect(
      "accepts the 9 operations of channel moderation from the owner and the server only, of 7 roles",
      () =>
        Effect.gen(function* () {
          const { app, banned, channel, member, owner } = yield* makeChannel
          const outsider = yield* newPlayer(app, "Outsider")
          const listener = { socket: yield* connectAnonymously(app) }
          const by =
            ({ socket }: { readonly socket: SocketClient }) =>
            (op: Op, playerId: string) =>
              Effect.map(
                socket.request({ t: "channelModerate", channel, op, playerId }),
                (reply) => errorCode(reply) ?? "ok"
              )
          const server = (key: string) => (op: Op, playerId: string) =>
            Effect.map(byServer(app, key, channel, op, playerId), ({ body, status }) =>
              status === 200 ? "ok" : at(body, "error", "code")
            )
          const roles = [
            ["member", by(member), "owner_only"],
            ["outsider", by(outsider), "owner_only"],
            ["banned", by(banned), "owner_only"],
            ["anonymous", by(listener), "player_required"],
            ["a publishable key", server(app.publishableKey), "invalid_key"],
            ["owner", by(owner), "ok"],
            ["the server", server(app.secretKey), "ok"]
          ] as const
          const target = yield* newPlayer(app, "Target")
          const wrong: Array<string> = []
          for (const op of ops) {
            const [list, present] = effects[op]
            for (const [role, act, expected] of roles) {
              const first = preparations[op]
              if (first !== undefined) yield* by(owner)(first, target.id)
              if (op === "kick") yield* join(target, channel)
              const earlier = yield* report(app, channel)
              const outcome = yield* act(op, target.id)
              const later = yield* report(app, channel)
              const done = isListed(later, list, target.id) === present
              const right =
                expected === "ok" ? done : JSON.stringify(earlier) === JSON.stringify(later)
              if (outcome !== expected || !right)
                wrong.push(`${op} by ${role}: ${String(outcome)}, ${done}`)
              const undo = reversals[op]
              if (undo !== undefined) yield* by(owner)(undo, target.id)
            }
          }
          assert.deepStrictEqual(wrong, [])
        }),
      60_000
    )

    it.effect(
      "refuses a banned or muted player who lifts the restriction, even as owner elsewhere",
      () =>
        Effect.gen(function* () {
          const { app, banned, channel, member, owner } = yield* makeChannel
          yield* owner.socket.request({
            t: "channelModerate",
            channel,
            op: "mute",
            playerId: member.id
          })
          yield* banned.socket.request({ t: "channelCreate" })
          const cases: ReadonlyArray<readonly [OnlinePlayer, Op]> = [
            [banned, "unban"],
            [banned, "invite"],
            [member, "unmute"],
            [member, "allowSend"]
          ]
          for (const [player, op] of cases) {
            const act = { t: "channelModerate", channel, op, playerId: player.id }
            assert.strictEqual(errorCode(yield* player.socket.request(act)), "owner_only", op)
          }
          assert.strictEqual(errorCode(yield* join(banned, channel)), "channel_banned")
          const send = { t: "channelSend", channel, type: "x" }
          assert.strictEqual(errorCode(yield* member.socket.request(send)), "muted")
          const shown = yield* report(app, channel)
          assert.isTrue(isListed(shown, "banned", banned.id))
        })
    )

    it.effect(
      "keeps banned members out in 25 races of kicks and bans with joins and messages",
      () =>
        Effect.gen(function* () {
          const { app, channel, member: first, owner } = yield* makeChannel
          // Two take turns, since one alone would reach the rate limit of a socket.
          const second = yield* newPlayer(app, "Second")
          for (let round = 0; round < 25; round++) {
            const member = round % 2 === 0 ? first : second
            const act = (op: Op) =>
              owner.socket.request({ t: "channelModerate", channel, op, playerId: member.id })
            for (const op of ["kick", "ban"] as const) {
              yield* join(member, channel)
              const [reply] = yield* Effect.all(
                [
                  act(op),
                  join(member, channel),
                  member.socket.request({ t: "channelSend", channel, type: "late" }),
                  join(member, channel)
                ],
                { concurrency: "unbounded" }
              )
              assert.isUndefined(errorCode(reply))
            }
            assert.isFalse(isListed(yield* report(app, channel), "members", member.id))
            assert.strictEqual(errorCode(yield* join(member, channel)), "channel_banned")
            yield* act("unban")
            assert.isUndefined(errorCode(yield* join(member, channel)))
          }
        }),
      60_000
    )

    it.effect("refuses a client that creates a channel under a name of the server", () =>
      Effect.gen(function* () {
        const { app, owner } = yield* makeChannel
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
          const made = yield* owner.socket.request({ t: "channelCreate", channel })
          assert.strictEqual(errorCode(made), expected, channel)
        }
        assert.isUndefined(errorCode(yield* join(owner, managed)))
        const act = { t: "channelModerate", channel: managed, op: "allowSend", playerId: owner.id }
        assert.strictEqual(errorCode(yield* owner.socket.request(act)), "owner_only")
      })
    )
  }
)
