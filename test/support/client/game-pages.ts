/**
 * Pages of a game, with the client that the service serves: the game itself, and the callback page of
 * popups.
 */
import type { RequestListener } from "node:http"
import { Context, Effect, Layer } from "effect"
import type { ClientOptions } from "#client/client"
import { TestApp } from "#testing/app"
import { startServer } from "../local-server.ts"

const game = (options: ClientOptions) => `<!doctype html>
<html lang="de-AT">
<title>Game</title>
<button>Sign in</button>
<script type="module">
import { createClient, optInBox } from "${options.baseUrl}/sdk/client.js"
window.client = createClient(${JSON.stringify(options)})
window.optInBox = optInBox
window.mail = client.email.opened()
window.returned = client.oauth.result()
window.begin = () => client.oauth.signIn("google", { redirectUrl: "/signed-in" })
document.querySelector("button").onclick = () => {
  window.signingIn = begin()
  signingIn.catch(() => undefined)
}
document.title = "Ready"
</script>`

const signedIn = (baseUrl: string) => `<!doctype html>
<title>Signed in</title>
<script type="module">
import { returnToOpener } from "${baseUrl}/sdk/client.js"
if (returnToOpener()) document.body.textContent = "You may close this window."
</script>`

/** These headers isolate a page. They cut popups off from it, as games with threads need. */
const isolated = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp"
}

/** A page of a provider that cuts itself off from its opener, before the one where the player signs in. */
const cutOff = `<!doctype html><title>Provider</title>
<script>location.replace(location.hash.slice(1))</script>`

const answer =
  (pages: ReadonlyMap<string, string>): RequestListener =>
  ({ url = "" }, response) => {
    const { pathname } = new URL(url, "http://localhost")
    const text = pages.get(pathname)
    response.writeHead(text === undefined ? 404 : 200, {
      "content-type": "text/html",
      ...(pathname === "/isolated" || pathname === "/cut-off" ? isolated : {})
    })
    response.end(text)
  }

/** Serves `/`, `/isolated`, `/cut-off` and `/signed-in`. */
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
        ["/cut-off", cutOff],
        ["/signed-in", signedIn(baseUrl)]
      ])
      const { port } = yield* startServer(answer(pages))
      return { url: `http://localhost:${port}` }
    }).pipe(Effect.orDie)
  )
}
