/**
 * `svc seed`: fills a development environment with players, saves, stats, bans and appeals, and with
 * `--play` lets bots play in three rooms. It uses the public interface only and obeys its limits.
 */
import { randomBytes } from "node:crypto"
import { Effect, Option, Redacted, Result, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import type { EnvironmentName } from "#rpc/auth"
import { decodeConfig, type EnvironmentConfig } from "#rpc/config-document/document"
import type { FeatureName } from "#rpc/config-document/features"
import { signInThrottles } from "#rpc/email"
import { sessionThrottles } from "#rpc/sessions"
import { statKeysPerReport } from "#rpc/stats"
import { exitCodes, Failure, usageFailure } from "./failures.ts"
import { environmentFlag, switchFlag } from "./files.ts"
import { Json, makeProgress, note, printResult } from "./output.ts"
import { openRooms, roomCount } from "./seed-bots.ts"
import { type SeededPlayer, seededPlayers, statValue } from "./seed-players.ts"
import {
  appeal,
  asPlayers,
  banPlayer,
  createAccount,
  createGuest,
  hasPlayer,
  makePace,
  type Pace,
  reportStats,
  resolveAppeal,
  type SeedTarget,
  type SignedIn,
  writeSave
} from "./seed-service.ts"
import { pushConfig, readConfig, readFeatures } from "./service.ts"
import { publishableKeyFor, resolveTarget } from "./checked-target.ts"
import { nameOf, type Target } from "./target.ts"

const playersDefault = 200
const playersMax = 1000
/** Maximum play time in seconds, below the 15 minutes of an access token. */
const playSecondsMax = 600

/** Players that are searched, and filled, at a time. */
const concurrency = 4

const productionRefused = usageFailure(
  "svc seed fills development environments only: this one is production.",
  "Invented players would stand among the real ones, and nothing separates them again."
)

const keyMissing = new Failure({
  exitCode: exitCodes.refused,
  code: "publishable_key_missing",
  message: "The publishable key of the environment is missing: players sign in with it.",
  hints: [
    "SVC_PUBLISHABLE_KEY=pk_... svc seed   takes it from the dashboard's view Keys",
    "npm start                             starts a service on this machine, whose keys svc finds"
  ]
})

interface Counts {
  created: number
  existing: number
  accounts: number
  saves: number
  stats: number
  bans: number
  appeals: number
}

/** Context of one run. */
interface Run {
  readonly target: SeedTarget
  readonly config: EnvironmentConfig
  readonly isOn: (feature: FeatureName) => boolean
  readonly pace: Pace
  readonly counts: Counts
  /** Parts that were left out, and what turns them on. */
  readonly skipped: Map<string, string>
}

type Progress = (text: string) => Effect.Effect<void>

/** Reports once that the service limits the run. */
const makeOnWait = Effect.fnUntraced(function* (progress: Progress) {
  const isJson = yield* Json
  const { burst } = sessionThrottles.guestPerAddress
  const said = note(
    `The service lets about ${burst} guests a minute in from one address: svc seed waits and goes on.`,
    "  A service of your own goes faster when started with SVC_THROTTLES=off npm start."
  )
  let isSaid = isJson
  return Effect.suspend(() => {
    if (isSaid) return Effect.void
    isSaid = true
    return Effect.andThen(progress(""), said)
  })
})

const statsOf = ({ config }: Run, skill: number) => {
  const { rules } = config.integrity.stats
  const inRange = (key: string, value: number) => {
    const rule = rules.find(({ stat }) => stat === key)
    return Math.min(Math.max(value, rule?.min ?? value), rule?.max ?? value)
  }
  return Object.fromEntries(
    config.stats
      .slice(0, statKeysPerReport)
      .map((stat) => [stat.key, inRange(stat.key, statValue(stat, skill))])
  )
}

/** Signs a player up, as a guest where sign-ups are off or used up for this hour. */
const enter = Effect.fnUntraced(function* (run: Run, { email, name }: SeededPlayer) {
  const { counts, pace, skipped, target } = run
  const asGuest = pace(createGuest(target, name))
  if (email === undefined || !run.isOn("emailLogin")) return yield* asGuest
  const password = randomBytes(24).toString("base64url")
  const entered = yield* Effect.result(
    createAccount(target, { email, displayName: name, password })
  )
  if (Result.isSuccess(entered)) {
    counts.accounts += 1
    return entered.success
  }
  const { code } = entered.failure
  // An account of an earlier run keeps its email under another name.
  if (code === "email_taken") return yield* asGuest
  if (code !== "rate_limited") return yield* entered.failure
  const { burst } = signInThrottles.signupPerAddress
  skipped.set(
    "accounts",
    `sign-ups are limited to ${burst} an hour from one address: guests instead`
  )
  return yield* asGuest
})

const banSeeded = Effect.fnUntraced(function* (
  { counts, target }: Run,
  player: SignedIn,
  ban: NonNullable<SeededPlayer["ban"]>
) {
  yield* banPlayer(target, player, ban)
  counts.bans += 1
  if (ban.appeal === undefined) return
  yield* appeal(target, player, ban.appeal)
  counts.appeals += 1
  if (ban.decision !== undefined) yield* resolveAppeal(target, player, ban.decision)
})

/** Creates one player with everything it has. */
const fill = Effect.fnUntraced(function* (run: Run, seeded: SeededPlayer) {
  const { counts, target } = run
  const player = yield* enter(run, seeded)
  counts.created += 1
  if (run.isOn("saves")) {
    for (const save of seeded.saves) yield* writeSave(target, player, save)
    counts.saves += seeded.saves.length
  }
  const stats = statsOf(run, seeded.skill)
  if (run.isOn("stats") && Object.keys(stats).length > 0) {
    yield* reportStats(target, player, stats)
    counts.stats += 1
  }
  if (seeded.ban !== undefined) yield* banSeeded(run, player, seeded.ban)
})

const switchHint = (feature: string) => `features.${feature} is off: svc feature on ${feature}`

/** Records the parts for which the config leaves no room. */
const noteSkipped = ({ config, isOn, skipped }: Run) => {
  if (!isOn("emailLogin")) skipped.set("accounts", switchHint("emailLogin"))
  if (!isOn("saves")) skipped.set("saves", switchHint("saves"))
  if (!isOn("stats")) skipped.set("stats", switchHint("stats"))
  else if (config.stats.length === 0) {
    skipped.set("stats", "the config defines none: svc seed --define-stats adds three to it")
  }
}

/** Fills the environment with what it does not have yet. */
const fillAll = Effect.fnUntraced(function* (run: Run, count: number, progress: Progress) {
  const { counts, target } = run
  const players = seededPlayers(count)
  yield* progress("Looking for players of an earlier run ...")
  const missing = yield* Effect.filter(
    players,
    ({ name }) => Effect.map(hasPlayer(target, name), (has) => !has),
    { concurrency }
  )
  counts.existing = count - missing.length
  const show = Effect.suspend(() =>
    progress(`${counts.existing + counts.created} of ${count} players ...`)
  )
  const one = (seeded: SeededPlayer) => Effect.andThen(fill(run, seeded), show)
  // The first one alone: it shows whether both keys belong together.
  const [first, ...others] = missing
  yield* show
  if (first !== undefined) yield* one(first)
  yield* Effect.forEach(others, one, { concurrency, discard: true })
})

/** Opens the rooms and keeps the bots playing for this many seconds, or until Ctrl-C. */
const playAll = Effect.fnUntraced(function* (
  { config, pace, target }: Run,
  seconds: number,
  progress: Progress
) {
  yield* progress(`Opening ${roomCount} rooms ...`)
  const key = Redacted.value(target.players.secretKey)
  const { codes, playing } = yield* openRooms(target, config, { key, pace })
  yield* progress("")
  yield* note(
    `Bots play in ${codes.length} rooms (${codes.join(", ")}) for ${seconds} seconds. Ctrl-C ends it.`
  )
  yield* playing.pipe(Effect.timeoutOption(`${seconds} seconds`))
  return codes
}, Effect.scoped)

interface Options {
  readonly env: Option.Option<EnvironmentName>
  readonly players: number
  readonly play: number
  readonly defineStats: boolean
}

/** Finds the environment with both keys; fails in production. */
const findTarget = Effect.fnUntraced(function* (operator: Target) {
  if (operator.place.environment === "production") return yield* productionRefused
  const key = yield* publishableKeyFor(operator)
  if (Option.isNone(key)) return yield* keyMissing
  const target: SeedTarget = { operator, players: asPlayers(operator, key.value) }
  return target
})

const decoded = (document: unknown) =>
  Effect.mapError(
    Effect.fromResult(decodeConfig(document)),
    ({ message }) =>
      new Failure({
        exitCode: exitCodes.no,
        code: "invalid_config",
        message: `This version of svc does not understand the config: ${message}`,
        hints: ["Update svc to the version of the service."]
      })
  )

const Members = Schema.Record(Schema.String, Schema.Json)

/** Stats for a config without any. */
const exampleStats = [
  { key: "wins", title: "Wins", aggregation: "sum" },
  { key: "high_score", title: "High score", aggregation: "max" },
  { key: "best_lap", title: "Best lap", aggregation: "min" }
]

/** Reads the config; if asked, adds stats to one that defines none. */
const currentConfig = Effect.fnUntraced(function* (operator: Target, definesStats: boolean) {
  const { document, version } = yield* readConfig(operator)
  const config = yield* decoded(document)
  const members = Schema.decodeUnknownOption(Members)(document)
  if (!definesStats || config.stats.length > 0 || Option.isNone(members)) return config
  const added = { ...members.value, stats: exampleStats }
  yield* pushConfig(operator, added, version).pipe(
    Effect.catchTag("PushRefused", ({ code, message }) =>
      Effect.fail(
        new Failure({
          exitCode: exitCodes.no,
          code,
          message: `Failed to add stats to the config: ${message}`
        })
      )
    )
  )
  return yield* decoded(added)
})

const summaryOf = (run: Run, rooms: number): ReadonlyArray<string> => {
  const { counts, skipped, target } = run
  const { accounts, appeals, bans, created, existing, saves, stats } = counts
  return [
    `Filled ${nameOf(target.operator)} of ${target.operator.url}: ${created} players created, ${existing} were there.`,
    `  ${accounts} accounts, ${saves} saves, ${stats} players with stats, ${bans} bans, ${appeals} appeals`,
    ...(rooms === 0 ? [] : [`  ${rooms} rooms were played; their bots are deleted`]),
    ...[...skipped].map(([part, reason]) => `  no ${part}: ${reason}`)
  ]
}

const seed = Effect.fnUntraced(function* (options: Options) {
  const { defineStats, env, play: seconds, players: count } = options
  if (Option.contains(env, "production")) return yield* productionRefused
  const target = yield* findTarget(yield* resolveTarget(env))
  const features = yield* readFeatures(target.operator)
  const on = new Set(
    features.filter(({ enabled, offered }) => enabled && offered).map(({ key }) => key)
  )
  const progress = yield* makeProgress
  const run: Run = {
    target,
    config: yield* currentConfig(target.operator, defineStats),
    isOn: (feature) => on.has(feature),
    pace: yield* makePace(yield* makeOnWait(progress)),
    counts: { created: 0, existing: 0, accounts: 0, saves: 0, stats: 0, bans: 0, appeals: 0 },
    skipped: new Map()
  }
  noteSkipped(run)
  if (seconds > 0 && !run.isOn("multiplayer")) {
    return yield* usageFailure(`No rooms: ${switchHint("multiplayer")}`)
  }
  yield* fillAll(run, count, progress).pipe(Effect.ensuring(progress("")))
  const rooms = seconds === 0 ? [] : yield* playAll(run, seconds, progress)
  const result = { ...run.counts, rooms: rooms.length, skipped: Object.fromEntries(run.skipped) }
  yield* printResult(result, summaryOf(run, rooms.length))
})

const between = (minimum: number, maximum: number) =>
  Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** `svc seed`. */
export const seedCommand = Command.make(
  "seed",
  {
    env: environmentFlag,
    players: Flag.Int("players").pipe(
      Flag.withDescription(`How many players, up to ${playersMax} (default: ${playersDefault})`),
      Flag.withSchema(between(1, playersMax)),
      Flag.withDefault(playersDefault)
    ),
    play: Flag.Int("play").pipe(
      Flag.withMetavar("seconds"),
      Flag.withDescription(
        `Then let bots play in three rooms, for up to ${playSecondsMax} seconds`
      ),
      Flag.withSchema(between(1, playSecondsMax)),
      Flag.withDefault(0)
    ),
    defineStats: switchFlag(
      "define-stats",
      "Add wins, high_score and best_lap to a config that defines no stats"
    )
  },
  seed
).pipe(
  Command.withDescription(
    "Fill a development environment with players, saves, stats, bans and appeals, for trying things out"
  ),
  Command.withExamples([
    { command: "svc seed", description: "200 players; a second run adds only what is missing" },
    { command: "svc seed --play 60", description: "And bots in three rooms for a minute" }
  ])
)
