/** Harness of OAuth tests: a service, the four sign-in providers, and the requests of an app. */
import { hash, randomUUID } from "node:crypto"
import { Clock, Context, Effect, Layer, Logger, Record, References } from "effect"
import type { JWTPayload } from "jose"
import type { Provider as Name } from "#rpc/identities"
import { Provider } from "#rpc/identities"
import type { NativeProvider } from "#rpc/oauth/sign-in"
import { ProviderBaseUrls } from "#server/features/oauth/definitions"
import { at, request, type TestResponse } from "#testing/players"
import {
  addressOfNode,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase,
  type Tenant
} from "../http-stack.ts"
import { makeBrowser, type Page } from "./browser.ts"
import { startProvider, type TestProvider } from "./provider.ts"

export const baseUrl = "https://play.example.com"
export const redirectUrl = "https://game.example/signed-in"

/** The running providers of a test. */
export class Providers extends Context.Service<Providers, Readonly<Record<Name, TestProvider>>>()(
  "test/support/oauth/oauth-harness/Providers"
) {
  static readonly layer = Layer.effect(
    Providers,
    Effect.all({
      google: start("google"),
      discord: start("discord"),
      apple: start("apple"),
      x: start("x")
    })
  )
}

function start(name: Name) {
  return startProvider(name, { callbackUrl: `${baseUrl}/v1/auth/oauth/${name}/callback` })
}

/** Log lines of the service at all levels. */
export class Log extends Context.Service<Log, Array<string>>()(
  "test/support/oauth/oauth-harness/Log"
) {
  static readonly layer = Layer.effectContext(
    Effect.sync(() => {
      const lines: Array<string> = []
      const logger = Logger.map(Logger.formatJson, (line) => void lines.push(line))
      return Context.make(Log, lines).pipe(
        Context.add(Logger.CurrentLoggers, new Set([logger])),
        Context.add(References.MinimumLogLevel, "All")
      )
    })
  )
}

/** A node that finds these providers, apart from those that are elsewhere. */
export const OAuthNodeLive = (
  env: Readonly<Record<string, string>> = {},
  elsewhere: Readonly<Partial<Record<Name, string>>> = {}
) =>
  Layer.unwrap(
    Effect.map(Providers, (providers) => {
      const baseUrls = { ...Record.map(providers, ({ url }) => url), ...elsewhere }
      return nodeWith(env).pipe(Layer.provide(Layer.succeed(ProviderBaseUrls, baseUrls)))
    })
  ).pipe(Layer.provideMerge(Layer.mergeAll(SharedDatabase.layer, Providers.layer, Log.layer)))

/** Creates an environment with all providers enabled. */
export const makeApp = Effect.gen(function* () {
  const { development, production } = yield* makeTenants
  const providers = yield* Providers
  yield* configure(development, {
    auth: {
      redirectUrls: [redirectUrl, "mygame://signed-in"],
      providers: Record.map(providers, () => ({ enabled: true }))
    }
  })
  for (const name of Provider.literals) {
    yield* putCredentials(development, name, providers[name].credentials)
  }
  return { ...development, production }
})

/** Stores the credentials of a provider. */
export const putCredentials = Effect.fnUntraced(function* (
  tenant: Tenant,
  name: Name,
  credentials: object
) {
  const url = yield* addressOfNode
  const path = `${url}/v1/admin/auth/providers/${name}`
  const headers = { "x-svc-key": tenant.secretKey }
  const { status } = yield* request(path, { method: "PUT", headers, body: credentials })
  if (status !== 200) return yield* Effect.die(new Error(`${name}: ${status}`))
})

export const verifier = "a-verifier-that-is-long-enough-for-the-standard"
export const challengeOf = (text: string): string => hash("sha256", text, "base64url")

/** Sends a request to `/v1/auth/oauth`, optionally as a player. */
export const call = Effect.fnUntraced(function* (
  app: Tenant,
  path: string,
  body: object,
  accessToken?: string
) {
  const url = yield* addressOfNode
  return yield* request(`${url}/v1/auth/oauth/${path}`, {
    headers: {
      "x-svc-key": app.publishableKey,
      ...(accessToken === undefined ? {} : { authorization: `Bearer ${accessToken}` })
    },
    body
  })
})

/** Starts a sign-in, or a link with an access token. Returns the URL of the provider. */
export const startFlow = Effect.fnUntraced(function* (
  app: Tenant,
  name: Name,
  accessToken?: string
) {
  const body = { redirectUrl, challenge: challengeOf(verifier) }
  const started = yield* call(app, `${name}/start`, body, accessToken)
  if (started.status !== 200) {
    return yield* Effect.die(new Error(`${started.status} ${JSON.stringify(started.body)}`))
  }
  return String(at(started.body, "url"))
})

/** A browser without cookies. */
export const newBrowser = Effect.map(addressOfNode, (url) => makeBrowser(baseUrl, url))

/** The outcome in the fragment of the redirect URL. */
export const outcomeOf = ({ url }: Page) => {
  const fragment = new URLSearchParams(new URL(url).hash.slice(1))
  return { code: fragment.get("svc_code"), error: fragment.get("svc_error") }
}

export const exchange = (app: Tenant, code: string, own = verifier) =>
  call(app, "exchange", { code, verifier: own })

interface FlowOptions {
  readonly accessToken?: string | undefined
  readonly form?: Readonly<Record<string, string>>
}

/** Runs a flow up to its code or error. */
export const completeFlow = Effect.fnUntraced(function* (
  app: Tenant,
  name: Name,
  account: string,
  { accessToken, form = {} }: FlowOptions = {}
) {
  const browser = yield* newBrowser
  const url = yield* startFlow(app, name, accessToken)
  return outcomeOf(yield* browser.signIn(url, account, { form }))
})

/** Runs a flow up to its session. */
export const signIn = Effect.fnUntraced(function* (
  app: Tenant,
  name: Name,
  account: string,
  options?: FlowOptions
) {
  const { code, error } = yield* completeFlow(app, name, account, options)
  if (code === null) return yield* Effect.die(new Error(`${name}: ${error}`))
  return yield* exchange(app, code)
})

/** The identifying fields of a session response. */
export const summaryOf = ({ body, status }: TestResponse) => ({
  status,
  id: at(body, "player", "id"),
  displayName: at(body, "player", "displayName"),
  isGuest: at(body, "player", "isGuest"),
  methods: JSON.stringify(at(body, "player", "identities")),
  provider: at(body, "provider"),
  linked: at(body, "linked")
})

/** An id token with the digest of a random nonce, and the request fields of an app. */
export const makeToken = Effect.fnUntraced(function* (
  name: NativeProvider,
  sub: string,
  changes: JWTPayload = {},
  form: "hex" | "base64url" = "hex"
) {
  const { [name]: provider } = yield* Providers
  const now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
  const nonce = randomUUID()
  const claims: JWTPayload = {
    iss: provider.url,
    aud: provider.clientId,
    sub,
    nonce: hash("sha256", nonce, form),
    iat: now,
    exp: now + 300,
    ...changes
  }
  const idToken = yield* Effect.promise(() => provider.sign(claims))
  return { claims, nonce, idToken, platform: "ios" }
})
