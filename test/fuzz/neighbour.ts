/** Three players who play on, in a room of another project, whatever goes on around them. */
import { Effect, Schedule } from "effect"
import { at, newPlayer, type OnlinePlayer, request, type TestTarget } from "#testing/players"
import type { Findings } from "./findings.ts"

const speakMillis = 50
const patienceMillis = 15_000
/** How often they renew their tokens, which live for 15 minutes. */
const renewSpeeches = (5 * 60_000) / speakMillis

/** A player, and what it has heard of the others. */
class Member {
  readonly player: OnlinePlayer
  refreshToken: string
  /** The number that comes next, by who says it. */
  readonly next = new Map<string, number>()
  worstMillis = 0

  constructor(player: OnlinePlayer, findings: Findings) {
    this.player = player
    this.refreshToken = player.refreshToken
    player.socket.ws.on("message", (data) => this.#hear(String(data), findings))
    player.socket.ws.on("close", (code) => {
      if (code !== 1006) findings.add("a neighbour is cut off", `${code}`)
    })
  }

  #hear(text: string, findings: Findings): void {
    if (!text.startsWith('{"t":"message"')) return
    const message: unknown = JSON.parse(text)
    const from = String(at(message, "from"))
    const expected = this.next.get(from) ?? 1
    const number = at(message, "data", "n")
    if (number !== expected)
      findings.add("a neighbour hears things out of order", `${text}, not ${expected}`)
    this.next.set(from, expected + 1)
    this.worstMillis = Math.max(
      this.worstMillis,
      performance.now() - Number(at(message, "data", "at"))
    )
  }
}

const renew = Effect.fnUntraced(function* (target: TestTarget, member: Member) {
  const { body } = yield* request(`${target.url}/v1/auth/refresh`, {
    headers: { "x-svc-key": target.publishableKey },
    body: { refreshToken: member.refreshToken }
  })
  member.refreshToken = String(at(body, "refreshToken"))
  yield* member.player.socket.say({ t: "auth", token: String(at(body, "accessToken")) })
})

/** Moves in; `done` waits until everything is heard, and tells how many messages that were. */
export const neighbours = Effect.fnUntraced(function* (target: TestTarget, findings: Findings) {
  const host = yield* newPlayer(target, "Host")
  const room = yield* host.socket.ask({ t: "create", mode: "party", private: true })
  const roomId = at(room, "data", "roomId")
  const members = [new Member(host, findings)]
  for (const name of ["Left", "Right"]) {
    const player = yield* newPlayer(target, name)
    yield* player.socket.ask({ t: "join", roomId })
    members.push(new Member(player, findings))
  }
  let speeches = 0
  const heardOf = (speaker: Member, listener: Member) =>
    (listener.next.get(speaker.player.id) ?? 1) - 1
  const speak = Effect.gen(function* () {
    speeches += 1
    const now = performance.now()
    for (const { player } of members) {
      yield* player.socket.say({ t: "send", type: "count", data: { n: speeches, at: now } })
    }
    if (speeches % renewSpeeches === 0) yield* Effect.forEach(members, (it) => renew(target, it))
  })
  const speaking = yield* speak.pipe(Effect.repeat(Schedule.spaced(speakMillis)), Effect.forkScoped)
  const pairs = members.flatMap((speaker) =>
    members.flatMap((listener) => (speaker === listener ? [] : [[speaker, listener] as const]))
  )
  const deaf = () => pairs.filter(([speaker, listener]) => heardOf(speaker, listener) < speeches)
  const done = Effect.gen(function* () {
    yield* Effect.sync(() => speaking.interruptUnsafe())
    yield* Effect.suspend(() => (deaf().length === 0 ? Effect.void : Effect.fail("deaf"))).pipe(
      Effect.retry({ times: patienceMillis / speakMillis, schedule: Schedule.spaced(speakMillis) }),
      Effect.ignore
    )
    if (deaf().length > 0) findings.add("a neighbour has not heard everything", `${speeches} times`)
    const worst = Math.round(Math.max(...members.map(({ worstMillis }) => worstMillis)))
    return { messages: speeches * pairs.length, worst }
  })
  return { done }
})
