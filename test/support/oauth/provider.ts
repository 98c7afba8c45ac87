/**
 * A real OpenID provider (`oidc-provider`) in this process, with the paths, the client authentication
 * and the profile source of any of the four providers. Its sign-in page has an account field and two
 * buttons, `#continue` and `#cancel`, so a browser or a script can complete a flow.
 *
 *     const google = yield* startProvider("google", { callbackUrl, port: 0 })
 *     // the service: ProviderBaseUrls, and google.credentials for the environment
 */
import { createServer, type IncomingMessage, type Server } from "node:http"
import { text as readText } from "node:stream/consumers"
import { Effect } from "effect"
import {
  exportJWK,
  exportPKCS8,
  generateKeyPair,
  importJWK,
  type JWK,
  type JWTPayload,
  jwtVerify,
  SignJWT
} from "jose"
import {
  type Configuration,
  interactionPolicy,
  type KoaContextWithOIDC,
  Provider
} from "oidc-provider"
import type { Provider as Name } from "#rpc/identities"
import { definitionOf } from "#server/features/oauth/definitions"

/** An account at the provider. Its key is the id typed into the sign-in page. */
export interface Account {
  readonly name?: string
  readonly email?: string
  readonly emailVerified?: boolean
  readonly username?: string
  readonly picture?: string
}

/** A running provider. */
export interface TestProvider {
  readonly name: Name
  readonly url: string
  /** The credentials that an operator stores for it. */
  readonly credentials: Readonly<Record<string, unknown>>
  readonly clientId: string
  readonly accounts: Map<string, Account>
  /** Signs a token with the key of the provider. */
  readonly sign: (claims: JWTPayload, header?: { alg?: string; kid?: string }) => Promise<string>
  /** Replaces the id tokens of the next responses. */
  tamper: ((claims: JWTPayload) => Promise<string>) | undefined
  /** Response of the user info endpoint instead of a profile. */
  profileError: { readonly status: number; readonly body: object } | undefined
  /** All tokens that it issued and all client secrets that it received. */
  readonly issued: Array<string>
  /** Tokens that the service revoked. */
  readonly revoked: Array<string>
}

export interface ProviderOptions {
  readonly callbackUrl: string
  readonly port?: number
}

const clientId = "client-of-the-game"
const clientSecret = "a-secret-that-only-two-know"
const lifeSeconds = 600
const apple = { teamId: "ABCDE12345", keyId: "FGHIJ67890" }

const listen = (port: number) =>
  Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const server = createServer()
      server.listen(port, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )

const portOf = (server: Server): number => {
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : 0
}

const generateKeys = Effect.promise(async () => {
  const signing = await generateKeyPair("RS256", { extractable: true })
  const client = await generateKeyPair("ES256", { extractable: true })
  const jwk: JWK = { ...(await exportJWK(signing.privateKey)), kid: "provider-key", alg: "RS256" }
  return {
    jwk,
    clientKey: client.publicKey,
    privateKey: await exportPKCS8(client.privateKey)
  }
})
type Keys = Effect.Success<typeof generateKeys>

const page = (action: string) => `<!doctype html>
<title>Sign in</title>
<form method="post" action="${action}">
<input name="account" value="ada">
<button id="continue" name="answer" value="yes">Continue</button>
<button id="cancel" name="answer" value="no">Cancel</button>
</form>`

const formOf = async (request: IncomingMessage) => new URLSearchParams(await readText(request))

/** Accepts every account without a consent page. */
const makeConfiguration = (
  name: Name,
  base: string,
  callbackUrl: string,
  { jwk }: Keys,
  accounts: TestProvider["accounts"]
): Configuration => {
  const { authorize, clientAuth, revoke, profile, scope, token } = definitionOf(name, base)
  const pathOf = (url: string) => new URL(url).pathname
  const policy = interactionPolicy.base()
  policy.add(new interactionPolicy.Prompt({ name: "select_account", requestable: true }), 0)
  return {
    jwks: { keys: [jwk] },
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [callbackUrl],
        token_endpoint_auth_method:
          clientAuth === "basic" ? "client_secret_basic" : "client_secret_post",
        grant_types: ["authorization_code", "refresh_token"]
      }
    ],
    routes: {
      authorization: pathOf(authorize),
      token: pathOf(token),
      ...(profile.source === "id-token" ? { jwks: pathOf(profile.jwks) } : {}),
      ...(revoke === undefined ? {} : { revocation: pathOf(revoke) })
    },
    scopes: ["openid", ...scope.split(" ")],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    conformIdTokenClaims: false,
    features: { devInteractions: { enabled: false }, revocation: { enabled: true } },
    // The code of a native sign-in comes from the SDK, without a verifier.
    pkce: { required: () => name !== "apple" },
    issueRefreshToken: () => name === "apple",
    cookies: { keys: ["a key for cookies"] },
    ttl: {
      AccessToken: lifeSeconds,
      AuthorizationCode: lifeSeconds,
      Grant: lifeSeconds,
      IdToken: lifeSeconds,
      Interaction: lifeSeconds,
      RefreshToken: lifeSeconds,
      Session: lifeSeconds
    },
    interactions: { policy, url: (_, { uid }) => `/interaction/${uid}` },
    findAccount: (_, accountId) => ({
      accountId,
      claims: () => {
        const { email, emailVerified, name: own } = accounts.get(accountId) ?? {}
        return { sub: accountId, name: own, email, email_verified: emailVerified }
      }
    }),
    loadExistingGrant: async ({ oidc }) => {
      const grant = new oidc.provider.Grant({
        accountId: oidc.session?.accountId,
        clientId: oidc.client?.clientId
      })
      grant.addOIDCScope(["openid", ...scope.split(" ")].join(" "))
      await grant.save()
      return grant
    }
  }
}

/** The response of the user info endpoint of Discord or X. */
const userInfoOf = (
  name: Name,
  id: string,
  { email, emailVerified, name: own, picture, username }: Account
) =>
  name === "discord"
    ? { id, username: username ?? id, global_name: own ?? null, email, verified: emailVerified }
    : {
        data: { id, name: own ?? id, username: username ?? id, profile_image_url: picture }
      }

/** Runs a provider until the scope closes. */
export const startProvider = Effect.fnUntraced(function* (
  name: Name,
  { callbackUrl, port = 0 }: ProviderOptions
) {
  const server = yield* listen(port)
  const url = `http://127.0.0.1:${portOf(server)}`
  const keys = yield* generateKeys
  const accounts: TestProvider["accounts"] = new Map()
  const configuration = makeConfiguration(name, url, callbackUrl, keys, accounts)
  const oidc = new Provider(url, configuration)
  const signingKey = yield* Effect.promise(() => importJWK(keys.jwk, "RS256"))
  const running: TestProvider = {
    name,
    url,
    clientId,
    credentials:
      name === "apple"
        ? { servicesId: clientId, ...apple, privateKey: keys.privateKey }
        : { clientId, clientSecret },
    accounts,
    sign: (claims, header) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: "RS256", kid: "provider-key", ...header })
        .sign(signingKey),
    tamper: undefined,
    profileError: undefined,
    issued: [],
    revoked: []
  }
  oidc.use(interactions(oidc))
  oidc.use(userInfo(oidc, running))
  if (name === "apple") oidc.use(likeApple(running, keys))
  oidc.use(recordTokens(running))
  server.on("request", oidc.callback())
  return running
})

type Middleware = (context: KoaContextWithOIDC, next: () => Promise<void>) => Promise<void>

const interactions =
  (oidc: Provider): Middleware =>
  async (context, next) => {
    if (!context.path.startsWith("/interaction/")) return next()
    if (context.method === "GET") {
      context.body = page(context.path)
      return
    }
    const form = await formOf(context.req)
    const accountId = form.get("account") ?? ""
    const result =
      form.get("answer") === "yes"
        ? { login: { accountId }, select_account: {} }
        : { error: "access_denied", error_description: "The user declined." }
    context.redirect(await oidc.interactionResult(context.req, context.res, result))
    context.status = 303
  }

const userInfo =
  (oidc: Provider, running: TestProvider): Middleware =>
  async (context, next) => {
    const { profile } = definitionOf(running.name, running.url)
    if (profile.source !== "user-info" || context.path !== new URL(profile.url).pathname) {
      return next()
    }
    if (running.profileError !== undefined) {
      context.status = running.profileError.status
      context.body = running.profileError.body
      return
    }
    const [, bearer = ""] = /^Bearer (.+)$/.exec(context.get("authorization")) ?? []
    const token = await oidc.AccessToken.find(bearer)
    if (token === undefined) {
      context.status = 401
      return
    }
    const account = running.accounts.get(token.accountId) ?? {}
    context.body = userInfoOf(running.name, token.accountId, account)
  }

/**
 * Behaves like Apple: issues id tokens without the scope `openid`, and authenticates clients by a JWT
 * that their key signed.
 */
const likeApple =
  (running: TestProvider, { clientKey }: Keys): Middleware =>
  async (context, next) => {
    const { authorize, revoke, token } = definitionOf("apple", running.url)
    const isAt = (url: string | undefined) =>
      url !== undefined && context.path === new URL(url).pathname
    if (isAt(authorize))
      context.query = { ...context.query, scope: `openid ${context.query["scope"]}` }
    if (!isAt(token) && !isAt(revoke)) return next()
    const form = await formOf(context.req)
    await jwtVerify(form.get("client_secret") ?? "", clientKey, {
      algorithms: ["ES256"],
      issuer: apple.teamId,
      audience: running.url
    })
    running.issued.push(form.get("client_secret") ?? "")
    if (isAt(revoke)) running.revoked.push(form.get("token") ?? "")
    form.set("client_secret", clientSecret)
    Object.assign(context.req, { body: Object.fromEntries(form) })
    return next()
  }

const tokensOf = (body: object): ReadonlyArray<string> =>
  Object.entries(body).flatMap(([name, value]) =>
    name.endsWith("_token") && typeof value === "string" ? [value] : []
  )

/** Records issued tokens, and replaces id tokens by those of `tamper`. */
const recordTokens =
  (running: TestProvider): Middleware =>
  async (context, next) => {
    await next()
    const { tamper } = running
    const { body } = context
    if (typeof body !== "object" || body === null) return
    running.issued.push(...tokensOf(body))
    if (tamper === undefined || !("id_token" in body) || typeof body.id_token !== "string") return
    const [, payload = ""] = body.id_token.split(".")
    const claims: JWTPayload = JSON.parse(Buffer.from(payload, "base64url").toString())
    context.body = { ...body, id_token: await tamper(claims) }
  }
