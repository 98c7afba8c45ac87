/**
 * The fuzz run: random requests and frames against a running service, in rounds after a warm-up. Live
 * memory must not grow from one round to the next, and nothing may be left at the end. Bystanders play in
 * a room of another project throughout.
 */
import { NodeServices } from "@effect/platform-node"
import { Effect, Exit, Schedule } from "effect"
import { request } from "#testing/players"
import type { Runner } from "#testing/runners"
import { processStats } from "../chaos/process-stats.ts"
import { metricOf } from "../support/metrics.ts"
import { bystanders } from "./bystanders.ts"
import { Findings } from "./findings.ts"
import { FrameFuzzer } from "./frame-fuzzer.ts"
import { HttpFuzzer } from "./http-fuzzer.ts"
import { startTarget } from "./target.ts"
import { makeProject, signUp } from "./tenant.ts"

export interface FuzzOptions {
  readonly seed: number
  readonly requests: number
  readonly frames: number
  /** Rounds after a warm-up with a quarter of the input; memory is compared between the last two. */
  readonly rounds: number
  /** Rooms, channels and sessions that may linger when memory is measured, of each. */
  readonly lingeringMax: number
  /** How much live memory may grow from the last round but one to the last. */
  readonly growthMaxBytes: number
  readonly say: (line: string) => unknown
}

const warmUpShare = 0.25

/** Rounds of the same size that follow a round in which memory grew. */
const extraRounds = 2

/** Counts that must return to zero at once. */
const transient = ["svc_sockets", "svc_room_members", "svc_queue_tickets"]

/** Counts that return to zero seconds after their last use, with the short idle time of the target. */
const lingering = [
  'svc_cluster_entities{type="Room"}',
  'svc_cluster_entities{type="Channel"}',
  "svc_player_sessions"
]

/** What the bystanders, who stay, add to these counts. */
const bystanderCounts: Readonly<Record<string, number>> = {
  svc_sockets: 3,
  svc_room_members: 3,
  'svc_cluster_entities{type="Room"}': 1,
  svc_player_sessions: 3
}

/** Waits until at most `max` of each count are left. More after ten minutes are a finding. */
const untilGone = (url: string, names: ReadonlyArray<string>, max: number, findings: Findings) => {
  const left = Effect.map(request(`${url}/metrics`), ({ body }) =>
    names.flatMap((name) => {
      const count = metricOf(String(body), name) - (bystanderCounts[name] ?? 0)
      return count >= 0 && count <= max ? [] : [`${name} ${count}`]
    })
  )
  return left.pipe(
    Effect.filterOrFail((some) => some.length === 0),
    Effect.retry({ times: 600, schedule: Schedule.spaced("1 second") }),
    Effect.catch(() =>
      Effect.map(left, (some) => findings.add("something is left over", some.join(", ")))
    )
  )
}

/** Every line that the service logged is a finding: its level is warning. */
const readLog = ({ output }: Runner, findings: Findings): void => {
  for (const line of output().split("\n")) {
    const kind = /"message":"[^"]*"/.exec(line)?.[0] ?? line.slice(0, 100)
    if (line !== "") findings.add(`the service logged: ${kind}`, line)
  }
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`

const sayFigures = (
  say: FuzzOptions["say"],
  { figures: http }: HttpFuzzer,
  { figures: frames }: FrameFuzzer
) => {
  const statuses = Array.from(http.statuses).toSorted()
  say(
    `${http.requests} requests ${JSON.stringify(http.kinds)} by ${http.tenants} tenants, ` +
      `slowest reply ${http.worst.millis} ms to ${http.worst.asked}`
  )
  say(`fewest invalid requests: ${http.leastBad.join(" ")}`)
  say(statuses.map((pair) => pair.join(": ")).join(", "))
  say(`${frames.frames} frames on ${frames.sessions} sockets`)
}

/** Runs both fuzzers; returns the findings. */
export const fuzz = Effect.fnUntraced(
  function* (options: FuzzOptions) {
    const { frames, growthMaxBytes, lingeringMax, requests, rounds, say, seed } = options
    const target = yield* startTarget
    const { url } = target
    yield* Effect.addFinalizer((exit) =>
      Effect.sync(() => {
        if (Exit.isFailure(exit)) say(target.output())
      })
    )
    const findings = new Findings()
    const projectOf = Effect.fnUntraced(function* (name: string) {
      const developer = yield* signUp(url, `${name}@example.com`)
      return (yield* makeProject(url, developer)).development
    })
    const { done } = yield* bystanders(yield* projectOf("bystanders"), findings)
    const frameFuzzer = new FrameFuzzer(yield* projectOf("frames"), seed, findings)
    const httpFuzzer = new HttpFuzzer(url, seed, findings)
    const memory: Array<number> = []
    // Memory is read after full collections and once rooms, channels and sessions (45 kB each) have
    // ended. Otherwise it depends on speed: a fast machine ends a round with hundreds of them.
    const play = Effect.fnUntraced(function* (share: number) {
      yield* Effect.promise(() => frameFuzzer.send(frames * share))
      yield* Effect.promise(() => httpFuzzer.send(requests * share))
    })
    const playRound = Effect.fnUntraced(function* (share: number) {
      const startedAt = performance.now()
      yield* play(share)
      const seconds = Math.round((performance.now() - startedAt) / 1000)
      yield* untilGone(url, transient, 0, findings)
      yield* untilGone(url, lingering, lingeringMax, findings)
      const { data, handles, rss } = yield* Effect.promise(() => processStats(target.pid))
      memory.push(data)
      say(
        `round ${memory.length}: ${seconds} s; ${megabytes(data)} of data, ` +
          `rss ${megabytes(rss)}, ${handles} handles`
      )
    })
    const grows = () => {
      const [before = 0, after = 0] = memory.slice(-2)
      return after - before > growthMaxBytes
    }
    yield* play(warmUpShare)
    const share = (1 - warmUpShare) / rounds
    for (let round = 1; round <= rounds; round++) yield* playRound(share)
    // Caches fill once, and how far depends on speed. A leak grows with every round of the same size.
    for (let extra = 0; extra < extraRounds && grows(); extra++) yield* playRound(share)
    if (grows()) findings.add("memory grows", memory.map(megabytes).join(", "))
    const { messages, worst } = yield* done
    httpFuzzer.close()
    readLog(target, findings)
    sayFigures(say, httpFuzzer, frameFuzzer)
    say(`${messages} messages of bystanders, the slowest after ${worst} ms`)
    return findings.list
  },
  Effect.scoped,
  Effect.provide(NodeServices.layer)
)
