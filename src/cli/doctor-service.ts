/** Checks of the service over the network: address, readiness, clock, key, config, TURN. */
import { Clock, Effect, Option, Schema } from "effect"
import { HttpClientRequest } from "effect/http"
import { decodeConfig } from "#rpc/config-document/document"
import { modesOf } from "#rpc/config-document/multiplayer"
import { isLoopback } from "#rpc/config-document/origins"
import { changedPaths } from "#rpc/config-document/changes"
import { publishableKeyFor } from "./checked-target.ts"
import { parseConfig, validateConfig, withoutSchema } from "./document.ts"
import type { Failure } from "./failures.ts"
import { defaultFile, readText } from "./files.ts"
import { read, readConfig, readFeatures, send } from "./service.ts"
import { nameOf, type Target } from "./target.ts"
import {
  type Check,
  clockCheck,
  failed,
  ok,
  readyCheck,
  skipped,
  versionChecks,
  warning
} from "./doctor-checks.ts"
import { checkAsPlayer } from "./doctor-player.ts"

const Info = Schema.Struct({ version: Schema.String })

const Ready = Schema.Struct({
  ready: Schema.Boolean,
  database: Schema.Boolean,
  shards: Schema.Boolean,
  draining: Schema.Boolean
})

const failureCheck = (name: string, { hints = [], message }: Failure): Check =>
  failed(name, message, hints.join("\n"))

/** Rounding of the service's clock, which has whole seconds. */
const clockRounding = 1

/** Calls the service without a key; undefined if it is unreachable. */
const probeService = Effect.fnUntraced(function* (url: string) {
  const clock = yield* Clock.Clock
  const startedAt = clock.currentTimeMillisUnsafe()
  const sent = yield* send(url, HttpClientRequest.get(`${url}/v1/platform/info`))
  const endedAt = clock.currentTimeMillisUnsafe()
  const { version } = yield* read(url, Info, sent)
  const ready = yield* read(url, Ready, yield* send(url, HttpClientRequest.get(`${url}/readyz`)))
  const date = Date.parse(sent.response.headers["date"] ?? "")
  const tripSeconds = (endedAt - startedAt) / 1000
  const ahead = (startedAt + endedAt) / 2000 - date / 1000
  return {
    version,
    checks: [
      ok("service", `${url} answers in ${Math.round(tripSeconds * 1000)} ms, version ${version}`),
      readyCheck(ready),
      Number.isNaN(date)
        ? skipped("clock", "the response has no date")
        : clockCheck(ahead, clockRounding + tripSeconds / 2)
    ]
  }
})

/** Keys travel readable without TLS. */
const addressCheck = (url: string): ReadonlyArray<Check> => {
  const { hostname, protocol } = new URL(url)
  if (protocol === "https:" || isLoopback(hostname)) return []
  const remedy = "Put a proxy with a certificate before the service, and link its https address."
  return [warning("encryption", `${url} is not encrypted: keys can be read on the way`, remedy)]
}

/** Compares the config file with the config in force. */
const fileCheck = Effect.fnUntraced(function* (target: Target, current: Schema.Json) {
  const text = yield* readText(defaultFile)
  if (text === undefined) return skipped("config file", `no ${defaultFile} in this folder`)
  const parsed = parseConfig(text)
  if (parsed._tag === "Failure" || validateConfig(parsed.success)._tag === "Failure") {
    return failed("config file", `${defaultFile} is not valid`, "svc config validate   lists why")
  }
  const changed = changedPaths(withoutSchema(current), withoutSchema(parsed.success.document))
  if (changed.length === 0) return ok("config file", `is in force in ${nameOf(target)}`)
  const detail = `differs from ${nameOf(target)} in ${changed.length} places`
  return warning("config file", detail, "svc config diff   shows where, svc config push applies it")
})

/** Features that the config switches on and the deployment does not offer. */
const featuresCheck = Effect.fnUntraced(function* (target: Target) {
  const features = yield* readFeatures(target)
  const on = features.filter(({ enabled }) => enabled)
  const missing = on.filter(({ offered }) => !offered).map(({ key }) => key)
  if (missing.length === 0) return ok("features", `${on.length} on`)
  const detail = `${missing.join(", ")}: on in the config, not offered by the service`
  return failed("features", detail, "Add them to SVC_FEATURES, or svc feature off")
})

const turnChecks = Effect.fnUntraced(function* (target: Target, document: Schema.Json) {
  const decoded = decodeConfig(document)
  const peerMode = Option.fromUndefinedOr(
    decoded._tag === "Success" && decoded.success.features.multiplayer
      ? modesOf(decoded.success).find(({ transport }) => transport === "p2p")?.key
      : undefined
  )
  if (Option.isNone(peerMode)) return [skipped("turn", "no mode of the config is peer-to-peer")]
  const publishableKey = yield* publishableKeyFor(target)
  if (Option.isNone(publishableKey)) {
    const remedy = "SVC_PUBLISHABLE_KEY=pk_... svc doctor   signs a guest in, and deletes it"
    return [skipped("turn", "it needs a player, and so the publishable key", remedy)]
  }
  const player = { url: target.url, publishableKey: publishableKey.value }
  return yield* checkAsPlayer(player, peerMode.value)
})

/** The checks that need the secret key. */
const keyedChecks = Effect.fnUntraced(function* (target: Target) {
  const { document } = yield* readConfig(target)
  return [
    ok("key", `the secret key of ${nameOf(target)} (${target.keyFrom})`),
    yield* fileCheck(target, document),
    yield* featuresCheck(target),
    ...(yield* turnChecks(target, document))
  ]
})

/** The service, and what the checks compare it with. */
interface ServiceOptions {
  readonly url: string
  /** Version of this program, and of the game's packages. */
  readonly cli: string
  readonly installed: ReadonlyMap<string, string>
}

/** Checks the service, then the key, then what the key opens. */
export const checkService = Effect.fnUntraced(function* <R>(
  { cli, installed, url }: ServiceOptions,
  resolved: Effect.Effect<Target, Failure, R>
) {
  const met = yield* Effect.result(probeService(url))
  if (met._tag === "Failure") return [...addressCheck(url), failureCheck("service", met.failure)]
  const keyed = yield* resolved.pipe(
    Effect.flatMap(keyedChecks),
    Effect.catch((failure) => Effect.succeed([failureCheck("key", failure)]))
  )
  const { checks, version } = met.success
  return [...addressCheck(url), ...checks, ...versionChecks(version, cli, installed), ...keyed]
})
