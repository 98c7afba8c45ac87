/** Harness of developers' OAuth: a node, Google as a real OpenID provider, and a fake of GitHub. */
import { Context, Effect, Layer } from "effect"
import type { DeveloperProvider } from "#rpc/oauth/developers"
import { ProviderBaseUrls } from "#server/features/oauth/definitions"
import { at, request } from "#testing/players"
import { addressOfNode, nodeWith, SharedDatabase } from "../http-stack.ts"
import { makeBrowser } from "./browser.ts"
import { type Github, startGithub } from "./github.ts"
import { baseUrl, challengeOf, outcomeOf, verifier } from "./oauth-harness.ts"
import { startProvider, type TestProvider } from "./provider.ts"

export const dashboardUrl = `${baseUrl}/dashboard/signed-in`

const callbackOf = (provider: DeveloperProvider) =>
  `${baseUrl}/v1/developers/oauth/${provider}/callback`

/** The providers of a test. */
export class DeveloperProviders extends Context.Service<
  DeveloperProviders,
  { readonly google: TestProvider; readonly github: Github }
>()("test/support/oauth/developer-harness/DeveloperProviders") {
  static readonly layer = Layer.effect(
    DeveloperProviders,
    Effect.all({
      google: startProvider("google", { callbackUrl: callbackOf("google") }),
      github: startGithub(callbackOf("github"))
    })
  )
}

/** A node whose developers can sign in with both providers. */
export const DeveloperNodeLive = (env: Readonly<Record<string, string>> = {}) =>
  Layer.unwrap(
    Effect.map(DeveloperProviders, ({ github, google }) =>
      nodeWith({
        SVC_SIGNUPS: "open",
        SVC_DEVELOPER_GOOGLE_CLIENT_ID: google.clientId,
        SVC_DEVELOPER_GOOGLE_CLIENT_SECRET: String(google.credentials["clientSecret"]),
        SVC_DEVELOPER_GITHUB_CLIENT_ID: github.clientId,
        SVC_DEVELOPER_GITHUB_CLIENT_SECRET: github.clientSecret,
        ...env
      }).pipe(
        Layer.provide(Layer.succeed(ProviderBaseUrls, { google: google.url, github: github.url }))
      )
    )
  ).pipe(Layer.provideMerge(Layer.mergeAll(SharedDatabase.layer, DeveloperProviders.layer)))

/** Sends a request to the developers' API, with a session if there is a token. */
export const ask = Effect.fnUntraced(function* (
  method: string,
  path: string,
  options: { readonly body?: unknown; readonly token?: unknown } = {}
) {
  const url = yield* addressOfNode
  return yield* request(`${url}/v1/developers${path}`, {
    method,
    ...(options.body === undefined ? {} : { body: options.body }),
    ...(options.token === undefined
      ? {}
      : { headers: { authorization: `Bearer ${String(options.token)}` } })
  })
})

interface Flow {
  readonly intent?: string
  readonly token?: unknown
}

export const start = (provider: string, { intent, token }: Flow = {}, more: object = {}) =>
  ask("POST", `/oauth/${provider}/start`, {
    token,
    body: { redirectUrl: dashboardUrl, challenge: challengeOf(verifier), intent, ...more }
  })

/** Runs a flow up to its code or error. `account` is the one at Google; GitHub has its current user. */
export const completeFlow = Effect.fnUntraced(function* (
  provider: DeveloperProvider,
  account: string,
  flow: Flow = {}
) {
  const started = yield* start(provider, flow)
  const url = at(started.body, "url")
  if (typeof url !== "string") return yield* Effect.die(new Error(JSON.stringify(started.body)))
  const browser = makeBrowser(baseUrl, yield* addressOfNode)
  return outcomeOf(yield* browser.signIn(url, account))
})

export const exchange = (code: string | null, more: object = {}) =>
  ask("POST", "/oauth/exchange", { body: { code, verifier, ...more } })

/** Runs a flow up to the response of its exchange. */
export const signIn = Effect.fnUntraced(function* (
  provider: DeveloperProvider,
  account: string,
  flow: Flow & { readonly inviteCode?: string; readonly setupToken?: string } = {}
) {
  const { inviteCode, setupToken, ...rest } = flow
  const { code, error } = yield* completeFlow(provider, account, rest)
  if (code === null) return yield* Effect.die(new Error(`${provider}: ${error}`))
  return yield* exchange(code, { inviteCode, setupToken })
})
