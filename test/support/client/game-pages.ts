/**
 * Pages of a game, with the client bundled from the package's export: the game itself, and the callback
 * page of popups.
 */
import type { RequestListener } from "node:http"
import { fileURLToPath } from "node:url"
import { NodeServices } from "@effect/platform-node"
import { Context, Effect, FileSystem, Layer } from "effect"
import { createViteServer } from "vitest/node"
import { TestApp } from "#testing/app"
import { startServer } from "../local-server.ts"

const game = (options: object) => `<!doctype html>
<title>Game</title>
<button>Sign in</button>
<script type="module">
import { createClient } from "/client.js"
window.client = createClient(${JSON.stringify(options)})
window.mail = client.email.opened()
window.returned = client.oauth.result()
window.begin = () => client.oauth.signIn("google", { redirectUrl: "/signed-in" })
document.querySelector("button").onclick = () => {
  window.signingIn = begin()
  signingIn.catch(() => undefined)
}
document.title = "Ready"
</script>`

const signedIn = `<!doctype html>
<title>Signed in</title>
<script type="module">
import { returnToOpener } from "/client.js"
if (returnToOpener()) document.body.textContent = "You may close this window."
</script>`

/** The client, bundled for browsers into one file. */
const bundle = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const cacheDir = yield* fs.makeTempDirectoryScoped({ prefix: "svc-bundle-" })
  const entry = "player-backend/client"
  const bundler = yield* Effect.acquireRelease(
    Effect.promise(() =>
      createViteServer({
        configFile: false,
        root: fileURLToPath(new URL("../../..", import.meta.url)),
        cacheDir,
        logLevel: "error",
        server: { middlewareMode: true, hmr: false, ws: false, watch: null },
        optimizeDeps: { noDiscovery: true, include: [entry] }
      })
    ),
    (vite) => Effect.promise(() => vite.close())
  )
  const bundled = yield* Effect.promise(() => bundler.transformRequest(entry))
  return bundled?.code ?? ""
}).pipe(Effect.scoped)

const answer =
  (pages: ReadonlyMap<string, string>): RequestListener =>
  ({ url = "" }, response) => {
    const { pathname } = new URL(url, "http://localhost")
    const text = pages.get(pathname)
    const type = pathname.endsWith(".js") ? "text/javascript" : "text/html"
    response.writeHead(text === undefined ? 404 : 200, {
      "content-type": type,
      // This header cuts popups off from their opener.
      ...(pathname === "/isolated" ? { "cross-origin-opener-policy": "same-origin" } : {})
    })
    response.end(text)
  }

/** Serves `/`, `/isolated` and `/signed-in`. */
export class GamePages extends Context.Service<GamePages, { readonly url: string }>()(
  "test/support/client/game-pages/GamePages"
) {
  static readonly layer = Layer.effect(
    GamePages,
    Effect.gen(function* () {
      const { publishableKey: key, url: baseUrl } = yield* TestApp
      const page = game({ baseUrl, key, autoGuest: false })
      const pages = new Map([
        ["/", page],
        ["/isolated", page],
        ["/signed-in", signedIn],
        ["/client.js", yield* bundle]
      ])
      const { port } = yield* startServer(answer(pages))
      return { url: `http://localhost:${port}` }
    }).pipe(Effect.orDie)
  ).pipe(Layer.provide(NodeServices.layer))
}
