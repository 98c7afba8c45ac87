/**
 * A service and the four sign-in providers, each a real one in its own shape, and what an app does to
 * sign its players in.
 */
import { hash } from "node:crypto"
import { Context, Effect, Layer, Logger, Record, References } from "effect"
import type { Provider as Name } from "#rpc/identities"
import { Provider } from "#rpc/identities"
import { type Answer, at, request } from "#testing/players"
import {
  addressOfNode,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase,
  type Tenant
} from "../http/stack.ts"
import { makeBrowser, type Seen } from "./browser.ts"
import { startProvider, type TestProvider } from "./provider.ts"

export const baseUrl = "https://play.example.com"
export const redirectUrl = "https://game.example/signed-in"

/** The providers of a test. */
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

/** What the service has written to its log, whatever the level. */
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

/** The service, pointed to these providers. */
export const World = (env: Readonly<Record<string, string>> = {}) =>
  Layer.unwrap(
    Effect.map(Providers, (providers) =>
      nodeWith({
        SVC_OAUTH_GOOGLE_URL: providers.google.url,
        SVC_OAUTH_DISCORD_URL: providers.discord.url,
        SVC_OAUTH_APPLE_URL: providers.apple.url,
        SVC_OAUTH_X_URL: providers.x.url,
        ...env
      })
    )
  ).pipe(Layer.provideMerge(Layer.mergeAll(SharedDatabase.layer, Providers.layer, Log.layer)))

/** An environment whose app signs in with all providers. */
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
    yield* enter(development, name, providers[name].credentials)
  }
  return { ...development, production }
})

/** Enters, or changes, the credentials of a provider. */
export const enter = Effect.fnUntraced(function* (tenant: Tenant, name: Name, credentials: object) {
  const url = yield* addressOfNode
  const path = `${url}/v1/admin/auth/providers/${name}`
  const headers = { "x-svc-key": tenant.secretKey }
  const { status } = yield* request(path, { method: "PUT", headers, body: credentials })
  if (status !== 200) return yield* Effect.die(new Error(`${name}: ${status}`))
})

export const verifier = "a-verifier-that-is-long-enough-for-the-standard"
export const challengeOf = (text: string): string => hash("sha256", text, "base64url")

/** A request of the app under `/v1/auth/oauth`, as a player if there is one. */
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

/** Begins a sign-in, or with a token a linking; the address of the provider. */
export const begin = Effect.fnUntraced(function* (app: Tenant, name: Name, accessToken?: string) {
  const body = { redirectUrl, challenge: challengeOf(verifier) }
  const started = yield* call(app, `${name}/start`, body, accessToken)
  if (started.status !== 200) {
    return yield* Effect.die(new Error(`${started.status} ${JSON.stringify(started.body)}`))
  }
  return String(at(started.body, "url"))
})

/** A browser of its own. */
export const newBrowser = Effect.map(addressOfNode, (url) => makeBrowser(baseUrl, url))

/** The outcome in the fragment of an address. */
export const outcomeOf = ({ url }: Seen) => {
  const fragment = new URLSearchParams(new URL(url).hash.slice(1))
  return { code: fragment.get("svc_code"), error: fragment.get("svc_error") }
}

export const exchange = (app: Tenant, code: string, own = verifier) =>
  call(app, "exchange", { code, verifier: own })

interface How {
  readonly accessToken?: string | undefined
  readonly form?: Readonly<Record<string, string>>
}

/** All the way to the code, or to the error. */
export const comeBack = Effect.fnUntraced(function* (
  app: Tenant,
  name: Name,
  account: string,
  { accessToken, form = {} }: How = {}
) {
  const browser = yield* newBrowser
  const url = yield* begin(app, name, accessToken)
  return outcomeOf(yield* browser.signIn(url, account, { form }))
})

/** All the way to a session. */
export const signIn = Effect.fnUntraced(function* (
  app: Tenant,
  name: Name,
  account: string,
  how?: How
) {
  const { code, error } = yield* comeBack(app, name, account, how)
  if (code === null) return yield* Effect.die(new Error(`${name}: ${error}`))
  return yield* exchange(app, code)
})

/** What of a session tells who somebody is. */
export const summaryOf = ({ body, status }: Answer) => ({
  status,
  id: at(body, "player", "id"),
  displayName: at(body, "player", "displayName"),
  isGuest: at(body, "player", "isGuest"),
  methods: JSON.stringify(at(body, "player", "identities")),
  provider: at(body, "provider"),
  linked: at(body, "linked")
})
