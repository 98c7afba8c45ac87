/**
 * The fuzz run: a storm of requests and a storm of frames against a running service, in thirds, the
 * first to warm up. What is alive in the service must not grow from the second to the third, and
 * nothing of all that may be left once it is over; a room of neighbours plays on throughout.
 */
import { NodeServices } from "@effect/platform-node"
import { Effect, Exit, Schedule } from "effect"
import { request } from "#testing/players"
import type { Runner } from "#testing/runners"
import { vitalsOf } from "../chaos/vitals.ts"
import { Findings } from "./findings.ts"
import { FrameStorm } from "./frame-storm.ts"
import { HttpStorm } from "./http-storm.ts"
import { neighbours } from "./neighbour.ts"
import { startTarget } from "./target.ts"
import { makeProject, signUp } from "./tenant.ts"

export interface FuzzOptions {
  readonly seed: number
  readonly requests: number
  readonly frames: number
  /** Waits after each third until all rooms and channels are gone: a minute or two. */
  readonly patient: boolean
  readonly say: (line: string) => unknown
}

/** How much what is alive may grow in a third, at rest and while rooms still linger. */
const growthBytes = { patient: 12e6, hasty: 40e6 } as const

/** What has to come back to nothing: at once, and when all that lived is forgotten. */
const transient = ["svc_sockets", "svc_room_members", "svc_queue_tickets"]
const lasting = ["Room", "Channel", "PlayerSession"].map(
  (type) => `svc_cluster_entities{type="${type}"}`
)

/** What the neighbours, who stay, are of these. */
const neighbourhood: Readonly<Record<string, number>> = {
  svc_sockets: 3,
  svc_room_members: 3,
  'svc_cluster_entities{type="Room"}': 1,
  'svc_cluster_entities{type="PlayerSession"}': 3
}

/** The sum of a metric's series. */
const metricOf = (text: string, name: string): number =>
  text
    .split("\n")
    .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0)

/** Waits until nothing of these is left; what is left after a while is a finding. */
const untilGone = (url: string, names: ReadonlyArray<string>, findings: Findings) => {
  const left = Effect.map(request(`${url}/metrics`), ({ body }) =>
    names.flatMap((name) => {
      const count = metricOf(String(body), name) - (neighbourhood[name] ?? 0)
      return count === 0 ? [] : [`${name} ${count}`]
    })
  )
  return left.pipe(
    Effect.filterOrFail((some) => some.length === 0),
    Effect.retry({ times: 240, schedule: Schedule.spaced("1 second") }),
    Effect.catch(() =>
      Effect.map(left, (some) => findings.add("something is left over", some.join(", ")))
    )
  )
}

/** What the service complains of: it must complain of nothing. */
const readLog = ({ output }: Runner, findings: Findings): void => {
  for (const line of output().split("\n")) {
    const kind = /"message":"[^"]*"/.exec(line)?.[0] ?? line.slice(0, 100)
    if (line !== "") findings.add(`the service complains: ${kind}`, line)
  }
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`

/** Runs both storms; answers what was found. */
export const fuzz = Effect.fnUntraced(
  function* (options: FuzzOptions) {
    const { frames, patient, requests, say, seed } = options
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
    const { done } = yield* neighbours(yield* projectOf("neighbours"), findings)
    const frameStorm = new FrameStorm(yield* projectOf("frames"), seed, findings)
    const httpStorm = new HttpStorm(url, seed, findings)
    const memory: Array<number> = []
    for (const third of [1, 2, 3]) {
      const begun = performance.now()
      yield* Effect.promise(() => frameStorm.rage(frames / 3))
      yield* Effect.promise(() => httpStorm.rage(requests / 3))
      const seconds = Math.round((performance.now() - begun) / 1000)
      if (patient || third === 3)
        yield* untilGone(url, patient ? [...transient, ...lasting] : transient, findings)
      const { data, handles, rss } = yield* Effect.promise(() => vitalsOf(target.pid))
      memory.push(data)
      say(
        `third ${third}: ${seconds} s; ${megabytes(data)} of data, ` +
          `rss ${megabytes(rss)}, ${handles} handles`
      )
    }
    const [, before = 0, after = 0] = memory
    if (after - before > (patient ? growthBytes.patient : growthBytes.hasty)) {
      findings.add("memory grows", `from ${megabytes(before)} to ${megabytes(after)}`)
    }
    const { messages, worst } = yield* done
    httpStorm.close()
    readLog(target, findings)
    const { kinds, leastBad, requests: sent, statuses, tenants, worstMillis } = httpStorm.figures
    say(
      `${sent} requests ${JSON.stringify(kinds)} by ${tenants} tenants, ${worstMillis} ms at worst`
    )
    say(`fewest that were not valid: ${leastBad.join(" ")}`)
    say(
      Array.from(statuses)
        .toSorted()
        .map((pair) => pair.join(": "))
        .join(", ")
    )
    say(`${frameStorm.figures.frames} frames on ${frameStorm.figures.sessions} sockets`)
    say(`${messages} messages of neighbours, ${worst} ms at worst`)
    return findings.list
  },
  Effect.scoped,
  Effect.provide(NodeServices.layer)
)
