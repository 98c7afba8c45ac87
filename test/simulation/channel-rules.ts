/**
 * What the server has set on its channels: settings and lists, as far as its calls were answered. The
 * effect of a call without an answer is unknown, and no check relies on it afterwards.
 */
import { Cause, Effect, Exit } from "effect"
import type { ChannelReport, ModerateOp } from "#rpc/channels/frames"
import { Hub } from "#server/links/hub"
import type { Chance } from "./random.ts"
import { environmentId } from "./environment.ts"
import type { Runner } from "./runner.ts"
import type { Simulator } from "./simulator.ts"

/** A mute or a ban: the same object until a change is requested. */
export interface Sentence {
  readonly since: number
}

type List = "muted" | "banned" | "speakers"

const lists: ReadonlyMap<ModerateOp, readonly [List, boolean]> = new Map([
  ["mute", ["muted", true]],
  ["unmute", ["muted", false]],
  ["ban", ["banned", true]],
  ["unban", ["banned", false]],
  ["allowSend", ["speakers", true]],
  ["disallowSend", ["speakers", false]]
])

/** Channels of the server: one where all members may send, one with speakers. */
export const serverMade = ["lobby", "stage"] as const

export const channelKey = (name: string): string => `${environmentId}/${name}`

const patience = "5 seconds"

export class ChannelRules {
  readonly #simulator: Simulator
  readonly #chance: Chance
  readonly #players: ReadonlyArray<string>
  readonly #runners: () => ReadonlyArray<Runner>
  /** The lists that each player is on; undefined while unknown. */
  readonly #entries = new Map<string, Sentence | false | undefined>()
  /** The send rule of each channel. */
  readonly #send = new Map<string, "anyone" | "speakers" | undefined>()
  /** Calls whose outcome is open: one at a time. */
  #busy = false
  #messages = 0

  constructor(options: {
    readonly simulator: Simulator
    readonly chance: Chance
    readonly players: ReadonlyArray<string>
    readonly runners: () => ReadonlyArray<Runner>
  }) {
    this.#simulator = options.simulator
    this.#chance = options.chance
    this.#players = options.players
    this.#runners = options.runners
  }

  sentence(list: "muted" | "banned", name: string, playerId: string): Sentence | undefined {
    const entry = this.#entries.get(`${name} ${list} ${playerId}`)
    return entry === false ? undefined : entry
  }

  /** Creates the channels of the server; the lobby has room for half of the players. */
  begin(): void {
    const [first = ""] = this.#players
    const speakers = this.#players.slice(0, 2)
    for (const playerId of this.#players) {
      for (const name of serverMade) {
        this.#entries.set(`${name} muted ${playerId}`, false)
        this.#entries.set(`${name} banned ${playerId}`, false)
        const speaks = name === "stage" && speakers.includes(playerId)
        this.#entries.set(`${name} speakers ${playerId}`, speaks ? { since: 0 } : false)
      }
    }
    this.#send.set("lobby", "anyone")
    this.#send.set("stage", "speakers")
    const maxMembers = Math.ceil(this.#players.length / 2)
    this.#simulator.note(`the server makes lobby and stage, ${first} is the first to talk there`)
    this.#call("make lobby", (hub) => {
      const { Put } = hub.channel(environmentId, "lobby")
      return Put({ changes: { maxMembers, voice: { relayOnly: false } } })
    })
    this.#call("make stage", (hub) => {
      const { Put } = hub.channel(environmentId, "stage")
      return Put({ changes: { send: "speakers", speakers, voice: { mode: "sfu" } } })
    })
  }

  /** A random action of the server. */
  act(): void {
    if (this.#busy) return
    const chance = this.#chance
    const name = chance.pick(serverMade)
    const target = chance.pick(this.#players)
    if (name === undefined || target === undefined) return
    if (chance.happens(0.2)) return this.#say(name)
    if (chance.happens(0.1)) return this.#change(chance.happens(0.5) ? "anyone" : "speakers")
    const ops: ReadonlyArray<ModerateOp> = ["kick", ...lists.keys(), "unmute", "unban"]
    const op = chance.pick(ops)
    if (op !== undefined) this.#moderate(name, op, target)
  }

  #moderate(name: string, op: ModerateOp, target: string): void {
    const [list, listed] = lists.get(op) ?? []
    const key = `${name} ${list} ${target}`
    const before = this.#entries.get(key)
    const same = listed === undefined || (listed ? before !== false : before === false)
    if (!same || before === undefined) this.#entries.set(key, undefined)
    this.#call(
      `${op} ${target.slice(-2)} in ${name}`,
      (hub) => hub.channel(environmentId, name).Moderate({ op, target }),
      () => {
        if (listed === undefined) return
        const entry = listed ? { since: this.#simulator.now } : false
        // The later effect of an unanswered call is unknown.
        if (before !== undefined && !same) this.#entries.set(key, entry)
      }
    )
  }

  #change(send: "anyone" | "speakers"): void {
    const before = this.#send.get("stage")
    this.#send.set("stage", undefined)
    this.#call(
      `send of stage becomes ${send}`,
      (hub) => hub.channel(environmentId, "stage").Put({ changes: { send } }),
      () => {
        if (before !== undefined) this.#send.set("stage", send)
      }
    )
  }

  #say(name: string): void {
    const data = { n: (this.#messages += 1) }
    this.#call(`a message to ${name}`, (hub) =>
      hub.channel(environmentId, name).Publish({ type: "news", data })
    )
  }

  /** A call through a random runner; its effect is known only if it succeeds. */
  #call<A, E>(
    what: string,
    call: (hub: Hub["Service"]) => Effect.Effect<A, E>,
    done: () => void = () => undefined
  ): void {
    const runner = this.#chance.pick(this.#runners().filter(({ open }) => open))
    if (runner === undefined) return
    const simulator = this.#simulator
    this.#busy = true
    const id = { over: false }
    const over = (outcome: string): void => {
      if (id.over) return
      id.over = true
      this.#busy = false
      simulator.note(`server: ${what}: ${outcome}`)
    }
    simulator.after(6000, () => over("nothing is known of it"))
    runner.run(
      Hub.pipe(
        Effect.flatMap(call),
        Effect.timeout(patience),
        Effect.exit,
        Effect.map((exit) => {
          if (Exit.isSuccess(exit) && !id.over) done()
          over(Exit.isSuccess(exit) ? "ok" : String(Cause.squash(exit.cause)))
        })
      )
    )
  }

  /** Reads each channel and compares it with what the server has set. */
  check(runner: Runner | undefined): void {
    for (const name of serverMade) {
      let answered = false
      runner?.run(
        Hub.pipe(
          Effect.flatMap((hub) => hub.channel(environmentId, name).Get()),
          Effect.exit,
          Effect.map((exit) => {
            answered = true
            if (Exit.isSuccess(exit)) this.#compare(name, exit.value)
            else this.#simulator.fault(`${name} cannot be read: ${Cause.pretty(exit.cause)}`)
          })
        )
      )
      this.#simulator.after(5000, () => {
        if (!answered) this.#simulator.fault(`${name} does not answer`)
      })
    }
  }

  #compare(name: string, report: ChannelReport): void {
    const muted = new Set(report.muted.map(({ playerId }) => playerId))
    const banned = new Set(report.banned.map(({ playerId }) => playerId))
    const stored = { muted, banned, speakers: new Set(report.speakers) }
    for (const [list, players] of Object.entries(stored)) {
      for (const playerId of this.#players) {
        const entry = this.#entries.get(`${name} ${list} ${playerId}`)
        if (entry === undefined || (entry !== false) === players.has(playerId)) continue
        const is = players.has(playerId) ? "is" : "is not"
        this.#simulator.fault(`${playerId} ${is} on ${list} of ${name}, against what was answered`)
      }
    }
    const send = this.#send.get(name)
    if (send !== undefined && send !== report.channel.send) {
      this.#simulator.fault(`${name} has lost that its send is ${send}`)
    }
    if (!report.channel.managed) this.#simulator.fault(`${name} is nobody's`)
    this.#simulator.note(`${name} has what the server was answered`)
  }
}
