/** `svc domains`: custom domains of the hosted app. */
import { Effect, Schema } from "effect"
import { Argument, Command } from "effect/cli"

import { CustomDomain } from "#rpc/hosting/domains"
import { Deleted } from "#rpc/responses"
import { environmentFlag } from "./files.ts"
import { printResult, styled, table } from "./output.ts"
import { call } from "./service.ts"
import { resolveTarget } from "./checked-target.ts"
import { nameOf, type Target } from "./target.ts"

const out = styled("stdout")

const List = Schema.Struct({ domains: Schema.Array(CustomDomain) })

const domain = Argument.String("domain").pipe(
  Argument.withDescription("The domain, like play.example.com")
)

const path = (name: string) => `/v1/hosting/domains/${encodeURIComponent(name)}` as const

const unknownDomain = (target: Target, name: string) => ({
  missing: `${name} is no domain of ${nameOf(target)}. svc domains list lists them.`
})

/** Returns the next steps for a domain that is not proven yet. */
const steps = (
  { domain: name, record }: CustomDomain,
  { place: { environment } }: Target
): ReadonlyArray<string> => [
  "Add this record where the DNS of the domain is managed:",
  "",
  `  ${record.name}  ${record.type}  ${out("cyan", record.value)}`,
  "",
  `and point ${name} to your proxy. Then: svc domains verify ${name} --env ${environment}`
]

const listCommand = Command.make(
  "list",
  { env: environmentFlag },
  Effect.fn(function* ({ env }) {
    const target = yield* resolveTarget(env)
    const listed = yield* call(target, "GET /v1/hosting/domains", List)
    const rows = listed.domains.map((it) => [
      it.domain,
      it.status,
      it.status === "verified" ? it.url : `${it.record.name} TXT ${it.record.value}`
    ])
    yield* printResult(listed, table(["DOMAIN", "STATE", "ADDRESS OR RECORD TO ADD"], rows))
  })
).pipe(Command.withDescription("List the custom domains of the app"))

const addCommand = Command.make(
  "add",
  { env: environmentFlag, domain },
  Effect.fn(function* ({ domain: name, env }) {
    const target = yield* resolveTarget(env)
    const body = { domain: name }
    const added = yield* call(target, "POST /v1/hosting/domains", CustomDomain, { body })
    yield* printResult(
      added,
      added.status === "verified"
        ? [`${name} is verified already: ${added.url}`]
        : steps(added, target)
    )
  })
).pipe(Command.withDescription("Add a custom domain and print the DNS record that proves it"))

const verifyCommand = Command.make(
  "verify",
  { env: environmentFlag, domain },
  Effect.fn(function* ({ domain: name, env }) {
    const target = yield* resolveTarget(env)
    const route = `POST ${path(name)}/verify` as const
    const verified = yield* call(target, route, CustomDomain, unknownDomain(target, name))
    yield* printResult(verified, [`${name} is verified.`, out("cyan", verified.url)])
  })
).pipe(Command.withDescription("Look for the DNS record of a domain, and serve the app there"))

const removeCommand = Command.make(
  "remove",
  { env: environmentFlag, domain },
  Effect.fn(function* ({ domain: name, env }) {
    const target = yield* resolveTarget(env)
    const route = `DELETE ${path(name)}` as const
    const removed = yield* call(target, route, Deleted, unknownDomain(target, name))
    yield* printResult(removed, [`${name} is removed.`])
  })
).pipe(Command.withDescription("Remove a custom domain"))

/** `svc domains`. */
export const domainsCommand = Command.make("domains").pipe(
  Command.withDescription("Custom domains of the hosted app"),
  Command.withSubcommands([listCommand, addCommand, verifyCommand, removeCommand])
)
