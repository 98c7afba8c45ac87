/**
 * The pages of a game, as a browser gets them from the dev server of a bundler, which also takes the
 * types out of the client's sources: the game itself, and the small page that popups return to.
 */
import { fileURLToPath } from "node:url"
import { NodeServices } from "@effect/platform-node"
import { Context, Effect, FileSystem, Layer } from "effect"
import { createViteServer } from "vitest/node"
import { TestApp } from "#src/testing/app"

const game = (options: object) => `<!doctype html>
<title>Game</title>
<button>Sign in</button>
<script type="module">
import { createClient } from "/src/client/client.ts"
window.client = createClient(${JSON.stringify(options)})
window.mail = client.email.opened()
window.returned = client.oauth.result()
document.querySelector("button").onclick = () => {
  window.signingIn = client.oauth.signIn("google", { redirectUrl: "/signed-in" })
  signingIn.catch(() => undefined)
}
document.title = "Ready"
</script>`

const signedIn = `<!doctype html>
<title>Signed in</title>
<script type="module">
import { returnToOpener } from "/src/client/return.ts"
if (returnToOpener()) document.body.textContent = "You may close this window."
</script>`

/** What the client imports of `effect`, bundled before a page asks. */
const bundled = ["", "/crypto", "/encoding/Base64Url", "/http", "/http-api", "/rpc"]

/** Serves `/`, `/isolated` (which lets go of the popups that it opens) and `/signed-in`. */
export class GamePages extends Context.Service<GamePages, { readonly url: string }>()(
  "test/client/game-pages/GamePages"
) {
  static readonly layer = Layer.effect(
    GamePages,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const { publishableKey: key, url: baseUrl } = yield* TestApp
      const cacheDir = yield* fs.makeTempDirectoryScoped({ prefix: "svc-pages-" })
      const page = game({ baseUrl, key, autoGuest: false })
      const pages = new Map([
        ["/", page],
        ["/isolated", page],
        ["/signed-in", signedIn]
      ])
      const server = yield* Effect.acquireRelease(
        Effect.promise(async () => {
          const vite = await createViteServer({
            configFile: false,
            root: fileURLToPath(new URL("../..", import.meta.url)),
            appType: "custom",
            cacheDir,
            logLevel: "error",
            server: { host: "localhost", port: 0, hmr: false, ws: false, watch: null },
            optimizeDeps: { noDiscovery: true, include: bundled.map((path) => `effect${path}`) }
          })
          vite.middlewares.use((request, response, next) => {
            const path = new URL(request.url ?? "", "http://localhost").pathname
            const html = pages.get(path)
            if (html === undefined) return next()
            response.setHeader("content-type", "text/html")
            if (path === "/isolated") {
              response.setHeader("cross-origin-opener-policy", "same-origin")
            }
            response.end(html)
          })
          return vite.listen()
        }),
        (vite) => Effect.promise(() => vite.close())
      )
      const address = server.httpServer?.address()
      const port = typeof address === "object" ? address?.port : undefined
      return { url: `http://localhost:${port}` }
    }).pipe(Effect.orDie)
  ).pipe(Layer.provide(NodeServices.layer))
}
