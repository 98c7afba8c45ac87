/** Three players in a room of another project: whatever the fuzzers send, every message reaches them. */
import { Effect, Schedule } from "effect"
import { at, newPlayer, type OnlinePlayer, request, type TestTarget } from "#testing/players"
import type { Findings } from "./findings.ts"

const sendMillis = 50
const deliveryMaxMillis = 15_000
/** Messages between two token renewals. A token expires after 15 minutes. */
const renewEvery = (5 * 60_000) / sendMillis

/** A player, and the messages it has received from the others. */
class Member {
  readonly player: OnlinePlayer
  refreshToken: string
  /** The next expected number, by sender. */
  readonly next = new Map<string, number>()
  worstMillis = 0

  constructor(player: OnlinePlayer, findings: Findings) {
    this.player = player
    this.refreshToken = player.refreshToken
    player.socket.ws.on("message", (data) => this.#receive(String(data), findings))
    player.socket.ws.on("close", (code) => {
      if (code !== 1006) findings.add("a bystander is disconnected", `${code}`)
    })
  }

  #receive(text: string, findings: Findings): void {
    if (!text.startsWith('{"t":"message"')) return
    const message: unknown = JSON.parse(text)
    const from = String(at(message, "from"))
    const expected = this.next.get(from) ?? 1
    const number = at(message, "data", "n")
    if (number !== expected)
      findings.add("a bystander receives messages out of order", `${text}, not ${expected}`)
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
  yield* member.player.socket.send({ t: "auth", token: String(at(body, "accessToken")) })
})

/** Joins the room and keeps sending; `done` waits for the last message and returns the counts. */
export const bystanders = Effect.fnUntraced(function* (target: TestTarget, findings: Findings) {
  const host = yield* newPlayer(target, "Host")
  const room = yield* host.socket.request({ t: "create", mode: "party", private: true })
  const roomId = at(room, "data", "roomId")
  const members = [new Member(host, findings)]
  for (const name of ["Left", "Right"]) {
    const player = yield* newPlayer(target, name)
    yield* player.socket.request({ t: "join", roomId })
    members.push(new Member(player, findings))
  }
  let sent = 0
  const receivedFrom = (sender: Member, receiver: Member) =>
    (receiver.next.get(sender.player.id) ?? 1) - 1
  const send = Effect.gen(function* () {
    sent += 1
    const now = performance.now()
    for (const { player } of members) {
      yield* player.socket.send({ t: "send", type: "count", data: { n: sent, at: now } })
    }
    if (sent % renewEvery === 0) yield* Effect.forEach(members, (it) => renew(target, it))
  })
  const sending = yield* send.pipe(Effect.repeat(Schedule.spaced(sendMillis)), Effect.forkScoped)
  const pairs = members.flatMap((sender) =>
    members.flatMap((receiver) => (sender === receiver ? [] : [[sender, receiver] as const]))
  )
  const missing = () => pairs.filter(([sender, receiver]) => receivedFrom(sender, receiver) < sent)
  const done = Effect.gen(function* () {
    yield* Effect.sync(() => sending.interruptUnsafe())
    yield* Effect.suspend(() =>
      missing().length === 0 ? Effect.void : Effect.fail("missing")
    ).pipe(
      Effect.retry({
        times: deliveryMaxMillis / sendMillis,
        schedule: Schedule.spaced(sendMillis)
      }),
      Effect.ignore
    )
    if (missing().length > 0) findings.add("a bystander misses messages", `of ${sent}`)
    const worst = Math.round(Math.max(...members.map(({ worstMillis }) => worstMillis)))
    return { messages: sent * pairs.length, worst }
  })
  return { done }
})
