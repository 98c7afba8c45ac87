/** A service that a browser reaches at its public URL, with a real OpenID provider that mimics Google. */
import { createServer } from "node:net"
import { Context, Effect, Layer } from "effect"
import { ProviderBaseUrls } from "#server/features/oauth/definitions"
import { TestApp } from "#testing/app"
import { configure, request } from "#testing/players"
import { startProvider, type TestProvider } from "../oauth/provider.ts"
import { DatabaseLive } from "../service.ts"

const freePort = Effect.callback<number>((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

/** The provider, and the address of the service that it redirects to. */
export class Google extends Context.Service<
  Google,
  { readonly provider: TestProvider; readonly port: number; readonly baseUrl: string }
>()("test/support/client/sign-in-app/Google") {
  static readonly layer = Layer.effect(
    Google,
    Effect.gen(function* () {
      const port = yield* freePort
      const baseUrl = `http://localhost:${port}`
      const callbackUrl = `${baseUrl}/v1/auth/oauth/google/callback`
      return { provider: yield* startProvider("google", { callbackUrl }), port, baseUrl }
    })
  )
}

/** The service, configured with that provider as Google. */
export const SignInAppLive = Layer.unwrap(
  Effect.map(Google, ({ baseUrl, port, provider }) =>
    TestApp.layerWith({ PORT: String(port), SVC_BASE_URL: baseUrl }).pipe(
      Layer.provide(Layer.succeed(ProviderBaseUrls, { google: provider.url }))
    )
  )
).pipe(
  Layer.tap((context) =>
    Effect.gen(function* () {
      const app = Context.get(context, TestApp)
      const { provider } = yield* Google
      yield* configure(app, {
        features: { multiplayer: true },
        auth: { providers: { google: { enabled: true } } }
      })
      const entered = yield* request(`${app.url}/v1/admin/auth/providers/google`, {
        method: "PUT",
        headers: { "x-svc-key": app.secretKey },
        body: provider.credentials
      })
      if (entered.status !== 200) return yield* Effect.die(new Error(JSON.stringify(entered.body)))
    })
  ),
  Layer.provide(DatabaseLive),
  Layer.provideMerge(Google.layer)
)
