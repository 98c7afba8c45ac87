/** `svc feature on` and `svc feature off`: switches of an environment, one change for all names. */
import { Effect, type Option, Result, type Schema } from "effect"
import { Argument, Command } from "effect/cli"
import type { EnvironmentName } from "#rpc/auth"
import { changedPaths } from "#rpc/config-document/changes"
import { featureTable } from "#rpc/config-document/features"
import { isJsonObject, parseConfig, withoutSchema } from "./document.ts"
import { exitCodes, Failure } from "./failures.ts"
import { defaultFile, environmentFlag, readText } from "./files.ts"
import { disable, enable } from "./functions-service.ts"
import { printResult } from "./output.ts"
import { type PushRefused, pushConfig, readConfig } from "./service.ts"
import { resolveTarget } from "./checked-target.ts"
import { digestOf, lastSyncState, remember } from "./sync-state.ts"
import { nameOf, type Target } from "./target.ts"

/** The switches: those of the config, the opt-in for news, and functions, which have an endpoint. */
const names = [...Object.keys(featureTable), "news", "functions"]

const switchPath = (name: string): readonly [string, string] =>
  name === "news" ? ["svcNews", "optIn"] : ["features", name]

/** The document with a switch set. */
const withSwitch = (document: Schema.Json, name: string, on: boolean): Schema.Json => {
  const [section, field] = switchPath(name)
  const whole = isJsonObject(document) ? document : {}
  const part = whole[section]
  return { ...whole, [section]: { ...(isJsonObject(part) ? part : {}), [field]: on } }
}

const refusal = ({ code, message, problems }: PushRefused) =>
  new Failure({
    exitCode: exitCodes.no,
    code,
    message: `Nothing was changed: ${message}`,
    hints: [
      ...problems.map(({ message: each, path }) => `${path}: ${each}`),
      "Name all switches of a change at once: svc feature on realtimeChannels voice"
    ]
  })

/**
 * Remembers that the config file does not have the change yet: a push then says so instead of undoing
 * the switch. A file that was never compared counts as seen at the version before the change.
 */
const rememberUnseen = Effect.fnUntraced(function* (
  target: Target,
  before: Schema.Json,
  version: number
) {
  if ((yield* lastSyncState(target, defaultFile)) !== undefined) return
  const text = yield* readText(defaultFile)
  if (text === undefined) return
  const local = Result.getOrUndefined(parseConfig(text))?.document
  const isSame =
    local !== undefined && changedPaths(withoutSchema(local), withoutSchema(before)).length === 0
  yield* remember(target, defaultFile, isSame ? { version, digest: digestOf(local) } : { version })
})

/** Number of attempts. Another push may come between the read and the write of the config. */
const attempts = 5

const change = (on: boolean) =>
  Effect.fn(function* (options: {
    readonly switches: ReadonlyArray<string>
    readonly env: Option.Option<EnvironmentName>
  }) {
    const target = yield* resolveTarget(options.env)
    const inConfig = options.switches.filter((name) => name !== "functions")
    const push = Effect.gen(function* () {
      const { document, version } = yield* readConfig(target)
      const wanted = inConfig.reduce<Schema.Json>(
        (changed, name) => withSwitch(changed, name, on),
        document
      )
      const pushed = yield* pushConfig(target, wanted, version)
      yield* rememberUnseen(target, document, version)
      return pushed
    }).pipe(
      Effect.retry({
        while: (error) => error._tag === "PushRefused" && error.currentVersion !== undefined,
        times: attempts - 1
      }),
      Effect.catchTag("PushRefused", (error) => Effect.fail(refusal(error)))
    )
    const pushed = inConfig.length === 0 ? undefined : yield* push
    if (options.switches.includes("functions")) yield* on ? enable(target) : disable(target)
    const changed = pushed?.changed ?? []
    const words = options.switches.join(", ")
    yield* printResult(
      {
        environment: target.place.environment,
        switches: options.switches,
        on,
        ...(pushed === undefined ? {} : { configVersion: pushed.configVersion, changed })
      },
      [
        `On in ${nameOf(target)}: ${words}.`.replace("On", on ? "On" : "Off"),
        ...(changed.length === 0 ? [] : ["svc config pull brings the change into svc.config.json."])
      ]
    )
  })

const command = (word: "on" | "off", description: string) =>
  Command.make(
    word,
    {
      switches: Argument.Literals("feature", names).pipe(
        Argument.withDescription("Features, news (the opt-in box for mail) or functions"),
        Argument.atLeast(1)
      ),
      env: environmentFlag
    },
    change(word === "on")
  ).pipe(Command.withDescription(description))

/** `svc feature`. */
export const featureCommand = Command.make("feature").pipe(
  Command.withDescription("Switch features, news and functions on or off"),
  Command.withSubcommands([
    command("on", "Switch features on, at once on every process"),
    command("off", "Switch features off: their calls fail with feature_disabled")
  ]),
  Command.withExamples([
    { command: "svc feature on realtimeChannels voice", description: "Voice, and what it needs" }
  ])
)
