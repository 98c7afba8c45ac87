/**
 * `svc link`, `svc login` and `svc logout`: which service a folder belongs to, and the user's keys for
 * it. Today a key is the secret key of an environment (spec section 5).
 */
import { Effect, Option, Path, Redacted, Schema, Stdio, Stream } from "effect"
import { Argument, Command, Flag, Prompt, TerminalCapabilities } from "effect/cli"
import type { EnvironmentName } from "#rpc/auth"
import { isLoopback } from "#rpc/config-document/origins"
import { usageFailure } from "./failures.ts"
import { environmentFlag, writeText } from "./files.ts"
import { printResult, note } from "./output.ts"
import { meet, readConfig } from "./service.ts"
import { Store } from "./store.ts"
import {
  currentLink,
  localService,
  Link,
  linkFile,
  resolveTarget,
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
  return yield* usageFailure("Which service? svc link https://play.example.com")
})

const projectName = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, {
    message: "Expected up to 64 letters, digits, dots, dashes and underscores"
  })
)

/** The name of a folder, as far as it can name a project. */
const nameOf = (folder: string): string =>
  folder
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "")
    .slice(0, 64) || "default"

/** Whether what is sent to an address can be read on the way. */
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
        "The address of the service; SVC_URL or the service on this machine when absent"
      ),
      Argument.optional
    ),
    project: Flag.String("project").pipe(
      Flag.withDescription("The name to keep keys under; the folder's when absent"),
      Flag.withSchema(projectName),
      Flag.optional
    )
  },
  Effect.fn(function* (options) {
    const path = yield* Path.Path
    const url = yield* urlToLink(options.url)
    yield* meet(url)
    const here = Option.getOrUndefined(yield* localService)
    const name = here?.baseUrl === url ? here.project : nameOf(path.basename(path.resolve(".")))
    const link: Link = { url, project: Option.getOrElse(options.project, () => name) }
    yield* writeText(linkFile, `${JSON.stringify(link, null, 2)}\n`)
    if (readable(url))
      yield* note(`warning: ${url} is not https: keys for it can be read on the way.`)
    const ready = Option.isSome(yield* Effect.option(resolveTarget("development")))
    yield* printResult({ ...link, file: linkFile }, [
      `Linked this folder to ${url}, project ${link.project}.`,
      `  ${linkFile} says so; it holds no secret and may be committed`,
      ...(ready ? [] : [`  ${loginHint("development")}`])
    ])
  })
).pipe(
  Command.withDescription("Say which service and project this folder belongs to"),
  Command.withExamples([
    { command: "svc link https://play.example.com --project duel", description: "Link this folder" }
  ])
)

const standardInput = Effect.gen(function* () {
  const stdio = yield* Stdio.Stdio
  return yield* stdio.stdin.pipe(
    Stream.decodeText,
    Stream.mkString,
    Effect.mapError(() => usageFailure("Standard input cannot be read."))
  )
})

const keyFrom = Effect.fnUntraced(function* (source: Option.Option<string>, what: string) {
  if (Option.isSome(source)) {
    return source.value === "-"
      ? Redacted.make((yield* standardInput).trim())
      : yield* usageFailure(
          "A key on the command line can be read by others, and stays in the shell's history.",
          "svc login --key - < file   reads it from standard input"
        )
  }
  if (yield* canPrompt) {
    return yield* Prompt.run(Prompt.Hidden({ message: `Secret key (sk_...) for ${what}` }))
  }
  return yield* usageFailure(
    "There is no terminal to ask for the key at.",
    "svc login --key -             reads it from standard input",
    "SVC_URL and SVC_SECRET_KEY    need no login"
  )
})

const linked = Effect.gen(function* () {
  const link = Option.getOrUndefined(yield* currentLink)
  if (link !== undefined) return link
  return yield* usageFailure(
    "This folder is linked to no service yet.",
    "svc link https://play.example.com   links it"
  )
})

const loginCommand = Command.make(
  "login",
  {
    env: environmentFlag,
    key: Flag.String("key").pipe(
      Flag.withMetavar("-"),
      Flag.withDescription("Read the key from standard input instead of asking for it"),
      Flag.optional
    )
  },
  Effect.fn(function* ({ env, key }) {
    const { project, url } = yield* linked
    const store = yield* Store
    const secretKey = yield* keyFrom(key, `${env} of ${project}`)
    const secret = Redacted.value(secretKey)
    if (!/^sk_[\w-]+$/.test(secret)) {
      return yield* usageFailure("That is no secret key: those begin with sk_.")
    }
    const other = env === "development" ? "production" : "development"
    if (Option.contains(yield* store.key({ url, project, environment: other }), secret)) {
      return yield* usageFailure(`That is the key of ${other}.`)
    }
    yield* readConfig({
      url,
      secretKey,
      keyFrom: "svc login",
      place: { project, environment: env }
    })
    yield* store.setKey({ url, project, environment: env }, Option.some(secret))
    yield* printResult({ url, project, environment: env, file: store.credentialsFile }, [
      `Logged in to ${env} of ${project} at ${url}.`,
      `  The key is in ${store.credentialsFile}, which only you can read`
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
  { env: environmentFlag },
  Effect.fn(function* ({ env }) {
    const { project, url } = yield* linked
    const store = yield* Store
    yield* store.setKey({ url, project, environment: env }, Option.none())
    yield* printResult({ url, project, environment: env }, [
      `Forgot the key for ${env} of ${project} at ${url}.`
    ])
  })
).pipe(Command.withDescription("Forget the stored key of an environment"))

/** The commands of the user's own sign-in. */
export const signInCommands = [linkCommand, loginCommand, logoutCommand] as const
