/**
 * `svc link`, `svc login` and `svc logout`: the service of a folder, and the user's keys for it. A key
 * is the secret key of an environment.
 */
import { Effect, Option, Path, Redacted, Schema, Stdio, Stream } from "effect"
import { Argument, Command, Flag, Prompt, TerminalCapabilities } from "effect/cli"
import type { EnvironmentName } from "#rpc/auth"
import type { KeyDescription } from "#rpc/projects/projects"
import { isLoopback } from "#rpc/config-document/origins"
import { checkKey, describeKey } from "./checked-target.ts"
import { exitCodes, Failure, usageFailure } from "./failures.ts"
import { storedEnvironmentFlag, writeText } from "./files.ts"
import { printResult, note } from "./output.ts"
import { probeService } from "./service.ts"
import { plainLine } from "./terminal-text.ts"
import { Store } from "./store.ts"
import {
  currentLink,
  findKey,
  type KeySource,
  localService,
  Link,
  linkFile,
  serviceUrl,
  urlFromEnvironment
} from "./target.ts"

const canPrompt = Effect.map(
  TerminalCapabilities.TerminalCapabilities,
  (terminal) => terminal.canPrompt
)

const urlToLink = Effect.fnUntraced(function* (given: Option.Option<string>) {
  if (Option.isSome(given)) return yield* serviceUrl(given.value)
  const fromEnvironment = yield* urlFromEnvironment
  if (fromEnvironment !== undefined) return fromEnvironment
  const here = Option.getOrUndefined(yield* localService)
  if (here !== undefined) return yield* serviceUrl(here.baseUrl)
  if (yield* canPrompt) {
    return yield* serviceUrl(
      yield* Prompt.run(Prompt.String({ message: "Address of the service" }))
    )
  }
  return yield* usageFailure(
    "The address of the service is missing: svc link https://play.example.com"
  )
})

const projectName = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, {
    message: "Expected up to 64 letters, digits, dots, dashes and underscores"
  })
)

/** Derives a project name from the name of a folder. */
const nameOf = (folder: string): string =>
  folder
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "")
    .slice(0, 64) || "default"

/** Whether requests to the URL are unencrypted on the network. */
const readable = (url: string): boolean => {
  const { hostname, protocol } = new URL(url)
  return protocol === "http:" && !isLoopback(hostname)
}

const loginHint = (env: EnvironmentName) => `svc login --env ${env}   stores a key for it`

const linkCommand = Command.make(
  "link",
  {
    url: Argument.String("url").pipe(
      Argument.withDescription(
        "The address of the service (default: SVC_URL, or the service on this machine)"
      ),
      Argument.optional
    ),
    project: Flag.String("project").pipe(
      Flag.withDescription("The project name for stored keys (default: the folder's name)"),
      Flag.withSchema(projectName),
      Flag.optional
    )
  },
  Effect.fn(function* (options) {
    const path = yield* Path.Path
    const url = yield* urlToLink(options.url)
    yield* probeService(url)
    const here = Option.getOrUndefined(yield* localService)
    const name = here?.baseUrl === url ? here.project : nameOf(path.basename(path.resolve(".")))
    const link: Link = { url, project: Option.getOrElse(options.project, () => name) }
    yield* writeText(linkFile, `${JSON.stringify(link, null, 2)}\n`)
    if (readable(url))
      yield* note(`warning: ${url} is not https: others on the network can read its keys.`)
    const ready = Option.isSome(yield* Effect.option(findKey("development")))
    yield* printResult({ ...link, file: linkFile }, [
      `Linked this folder to ${url}, project ${link.project}.`,
      `  ${linkFile} has no secrets and may be committed`,
      ...(ready ? [] : [`  ${loginHint("development")}`])
    ])
  })
).pipe(
  Command.withDescription("Link this folder to a service and a project"),
  Command.withExamples([
    { command: "svc link https://play.example.com --project duel", description: "Link this folder" }
  ])
)

const standardInput = Effect.gen(function* () {
  const stdio = yield* Stdio.Stdio
  return yield* stdio.stdin.pipe(
    Stream.decodeText,
    Stream.mkString,
    Effect.mapError(() => usageFailure("Failed to read standard input."))
  )
})

const keyFrom = Effect.fnUntraced(function* (source: Option.Option<string>, what: string) {
  if (Option.isSome(source)) {
    return source.value === "-"
      ? Redacted.make((yield* standardInput).trim())
      : yield* usageFailure(
          "A key on the command line is visible to others and stays in the shell history.",
          "svc login --key - < file   reads it from standard input"
        )
  }
  if (yield* canPrompt) {
    return yield* Prompt.run(Prompt.Hidden({ message: `Secret key (sk_...) for ${what}` }))
  }
  return yield* usageFailure(
    "Failed to ask for the key: there is no terminal.",
    "svc login --key -             reads it from standard input",
    "SVC_URL and SVC_SECRET_KEY    need no login"
  )
})

const linked = Effect.gen(function* () {
  const link = Option.getOrUndefined(yield* currentLink)
  if (link !== undefined) return link
  return yield* usageFailure(
    "This folder is not linked to a service.",
    "svc link https://play.example.com   links it"
  )
})

/** Refuses the key of another project than that of the other environment's key under this name. */
const checkOther = Effect.fnUntraced(function* (
  source: KeySource,
  project: string,
  opens: KeyDescription
) {
  const store = yield* Store
  const environment = opens.environment === "development" ? "production" : "development"
  const stored = yield* store.key({ url: source.url, project, environment })
  if (Option.isNone(stored)) return
  const secretKey = Redacted.make(stored.value)
  // A stored key that the service no longer accepts says nothing.
  const other = yield* Effect.option(describeKey({ ...source, secretKey }))
  if (Option.isNone(other) || other.value.project.id === opens.project.id) return
  return yield* new Failure({
    exitCode: exitCodes.refused,
    code: "wrong_key",
    message:
      `This key opens the project ${opens.project.name}, ` +
      `but the key of ${environment} that is stored for ${project} opens ${other.value.project.name}.`,
    hints: [
      `svc logout --env ${environment}     deletes the stored key`,
      "svc link --project other   links this folder under another name"
    ]
  })
})

const loginCommand = Command.make(
  "login",
  {
    env: storedEnvironmentFlag,
    key: Flag.String("key").pipe(
      Flag.withMetavar("-"),
      Flag.withDescription("Read the key from standard input instead of asking for it"),
      Flag.optional
    )
  },
  Effect.fn(function* ({ env, key }) {
    const { project, url } = yield* linked
    const store = yield* Store
    const secretKey = yield* keyFrom(key, plainLine(`${env} of ${project}`))
    const secret = Redacted.value(secretKey)
    if (!/^sk_[\w-]+$/.test(secret)) {
      return yield* usageFailure("This is not a secret key: secret keys begin with sk_.")
    }
    const source = { url, secretKey, keyFrom: "svc login" }
    const opens = yield* describeKey(source)
    yield* checkKey(source, opens, { environment: env, project })
    yield* checkOther(source, project, opens)
    yield* store.setKey({ url, project, environment: env }, Option.some(secret))
    yield* printResult({ url, project, environment: env, file: store.credentialsFile }, [
      `Logged in to ${env} of ${project} at ${url}.`,
      `  The key is stored in ${store.credentialsFile}, which only you can read`
    ])
  })
).pipe(
  Command.withDescription("Store the secret key of an environment of the linked project"),
  Command.withExamples([
    { command: "svc login --env production", description: "Ask for the key" },
    { command: "svc login --env production --key - < key.txt", description: "Read it from a file" }
  ])
)

const logoutCommand = Command.make(
  "logout",
  { env: storedEnvironmentFlag },
  Effect.fn(function* ({ env }) {
    const { project, url } = yield* linked
    const store = yield* Store
    yield* store.setKey({ url, project, environment: env }, Option.none())
    yield* printResult({ url, project, environment: env }, [
      `Deleted the key for ${env} of ${project} at ${url}.`
    ])
  })
).pipe(Command.withDescription("Delete the stored key of an environment"))

/** Commands for linking and keys. */
export const signInCommands = [linkCommand, loginCommand, logoutCommand] as const
