/**
 * Harness of email tests: a node that sends mails to an SMTP server in this process, a project with
 * `emailLogin`, and requests of its players.
 */
import { Effect, Layer } from "effect"
import { at, guest, request } from "#testing/players"
import { addressOfNode, configure, makeTenants, nodeWith, SharedDatabase } from "../http-stack.ts"
import type { Tenant } from "../http-stack.ts"
import { Inbox } from "./inbox.ts"

/** A node that sends its mails to the inbox. */
export const nodeWithInbox = (env: Readonly<Record<string, string>> = {}) =>
  Layer.unwrap(Effect.map(Inbox, ({ url }) => nodeWith({ SMTP_URL: url, ...env })))

/** A node with its own inbox and database. */
export const NodeLive = (env: Readonly<Record<string, string>> = {}) =>
  nodeWithInbox(env).pipe(Layer.provideMerge(Layer.mergeAll(Inbox.layer, SharedDatabase.layer)))

export const password = "correct horse battery"

/** Config with email sign-in and an allowed redirect URL for mail links. */
export const emailConfig = {
  version: 1,
  features: { emailLogin: true },
  auth: { redirectUrls: ["https://game.example.com/*"] }
}

interface SignedIn {
  readonly accessToken: string
}

/** Requests of the players of an environment. */
export const callsOf = (url: string, tenant: Tenant) => {
  const post = (path: string, body: unknown, player?: SignedIn, extra: object = {}) =>
    request(`${url}/v1/auth/${path}`, {
      headers: {
        "x-svc-key": tenant.publishableKey,
        ...(player === undefined ? {} : { authorization: `Bearer ${player.accessToken}` }),
        ...extra
      },
      body
    })
  const me = (player: SignedIn) =>
    request(`${url}/v1/players/me`, {
      headers: {
        "x-svc-key": tenant.publishableKey,
        authorization: `Bearer ${player.accessToken}`
      }
    })
  /** Signs up a player. */
  const signUp = (email: string, more: object = {}) =>
    Effect.map(post("email/signup", { email, password, ...more }), (answer) => {
      if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
      return {
        id: String(at(answer.body, "player", "id")),
        accessToken: String(at(answer.body, "accessToken")),
        refreshToken: String(at(answer.body, "refreshToken"))
      }
    })
  const logIn = (email: string, given = password) => post("email/login", { email, password: given })
  const ban = (playerId: string) =>
    request(`${url}/v1/admin/players/${playerId}/ban`, {
      headers: { "x-svc-key": tenant.secretKey },
      body: { reason: "test" }
    })
  const newGuest = guest({ url, ...tenant })
  return { ...tenant, url, ban, guest: newGuest, logIn, me, post, signUp }
}

/** Creates a project with email sign-in in both environments. */
export const makeEmailProject = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development, production, projectId } = yield* makeTenants
  yield* configure(development, emailConfig)
  yield* configure(production, emailConfig)
  return {
    ...callsOf(url, development),
    /** Pushes another config to the development environment. */
    configure: (document: object) => configure(development, document),
    production: callsOf(url, production),
    projectId
  }
})

export const codeOf = (answer: { readonly body: unknown }) => at(answer.body, "error", "code")
