/**
 * A fake of GitHub's OAuth: authorization with PKCE, the token endpoint, which answers errors with status
 * 200, `/user` and `/user/emails`. GitHub is no OpenID provider, so it has no id tokens.
 */
import { hash, randomUUID } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { text as readText } from "node:stream/consumers"
import { Effect } from "effect"

/** The user who is signed in at the fake. */
export interface GithubUser {
  readonly id: number
  readonly login: string
  readonly name?: string | null
  readonly emails: ReadonlyArray<{
    readonly email: string
    readonly primary: boolean
    readonly verified: boolean
  }>
}

/** A running fake. */
export interface Github {
  readonly url: string
  readonly clientId: string
  readonly clientSecret: string
  user: GithubUser
  /** Whether the user declines the next authorizations. */
  declines: boolean
  /** Paths that answer 500. */
  readonly broken: Set<string>
}

interface Grant {
  readonly challenge: string
  readonly redirectUri: string
  readonly user: GithubUser
}

const json = (response: ServerResponse, status: number, body: unknown) => {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8" })
  response.end(JSON.stringify(body))
}

const clientId = "Iv1.dashboard"
const clientSecret = "a-secret-of-the-dashboard"

/** The endpoints of the fake, and what they have issued. */
const makeEndpoints = (callbackUrl: string) => {
  const grants = new Map<string, Grant>()
  const tokens = new Map<string, GithubUser>()

  const authorize = (github: Github, query: URLSearchParams, response: ServerResponse) => {
    const redirectUri = query.get("redirect_uri") ?? ""
    const isValid =
      query.get("client_id") === clientId &&
      redirectUri === callbackUrl &&
      query.get("code_challenge_method") === "S256" &&
      query.get("scope") === "read:user user:email"
    if (!isValid) return json(response, 404, {})
    const code = randomUUID()
    const challenge = query.get("code_challenge") ?? ""
    grants.set(code, { challenge, redirectUri, user: github.user })
    const outcome = github.declines
      ? {
          error: "access_denied",
          error_description: "The user has denied your application access."
        }
      : { code, iss: `${github.url}/login/oauth` }
    const back = new URLSearchParams({ ...outcome, state: query.get("state") ?? "" })
    response.writeHead(302, { location: `${redirectUri}?${back}` }).end()
  }

  const token = async (request: IncomingMessage, response: ServerResponse) => {
    const form = new URLSearchParams(await readText(request))
    const code = form.get("code") ?? ""
    const grant = grants.get(code)
    grants.delete(code)
    const isValid =
      request.headers.accept === "application/json" &&
      form.get("client_id") === clientId &&
      form.get("client_secret") === clientSecret &&
      grant !== undefined &&
      form.get("redirect_uri") === grant.redirectUri &&
      hash("sha256", form.get("code_verifier") ?? "", "base64url") === grant.challenge
    if (!isValid) return json(response, 200, { error: "bad_verification_code" })
    const accessToken = `gho_${randomUUID()}`
    tokens.set(accessToken, grant.user)
    const scope = "read:user,user:email"
    return json(response, 200, { access_token: accessToken, token_type: "bearer", scope })
  }

  const api = (path: string, request: IncomingMessage, response: ServerResponse) => {
    const { authorization = "", "user-agent": userAgent } = request.headers
    const user = tokens.get(authorization.replace(/^Bearer /, ""))
    if (user === undefined) return json(response, 401, { message: "Bad credentials" })
    if (userAgent === undefined) return json(response, 403, { message: "Administrative rules" })
    const { emails, ...profile } = user
    return json(response, 200, path === "/user" ? profile : emails)
  }

  return { api, authorize, token }
}

/** Runs a fake whose only client returns to this URL, until the scope closes. */
export const startGithub = Effect.fnUntraced(function* (callbackUrl: string) {
  const { api, authorize, token } = makeEndpoints(callbackUrl)
  const server = createServer()
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  const github: Github = {
    url: `http://127.0.0.1:${port}`,
    clientId,
    clientSecret,
    user: { id: 0, login: "nobody", emails: [] },
    declines: false,
    broken: new Set()
  }
  server.on("request", (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", github.url)
    if (github.broken.has(pathname)) return json(response, 500, {})
    if (pathname === "/login/oauth/authorize") return authorize(github, searchParams, response)
    if (pathname === "/login/oauth/access_token") return void token(request, response)
    if (/^\/user(?:\/emails)?$/.test(pathname)) return api(pathname, request, response)
    return json(response, 404, {})
  })
  return github
})
