/** The page to which share links of hosted apps lead: previews see the card, people get to the app. */
import { get as httpGet, type IncomingHttpHeaders } from "node:http"
import { NodeServices } from "@effect/platform-node"
import { assert, layer } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { at, guest, request, type TestTarget } from "#testing/players"
import {
  addressOfNode,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase
} from "../../support/http-stack.ts"
import { deploy } from "../../support/hosting.ts"
import { play } from "../../support/moderation-calls.ts"

const Hosted = Layer.unwrap(
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const folder = yield* fs.makeTempDirectoryScoped({ prefix: "forward-" })
    const env = { SVC_DATA_DIR: folder, SVC_HOSTING_DOMAIN: "apps.example.net" }
    return nodeWith(env).pipe(Layer.provideMerge(SharedDatabase.layer))
  })
).pipe(Layer.provideMerge(NodeServices.layer))

const robots = {
  facebook: "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
  x: "Twitterbot/1.0",
  slack: "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
  discord: "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
  whatsapp: "WhatsApp/2.23.20.0",
  browser: "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36"
}

interface Page {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

const visit = (url: string, host: string, path: string, headers: Record<string, string> = {}) =>
  Effect.callback<Page>((resume) => {
    const options = { headers: { host, ...headers }, agent: false }
    const sent = httpGet(`${url}${path}`, options, (response) => {
      let text = ""
      response.on("data", (piece: Buffer) => (text += piece.toString()))
      response.on("end", () =>
        resume(
          Effect.succeed({ status: response.statusCode ?? 0, headers: response.headers, text })
        )
      )
    })
    sent.on("error", (error) => resume(Effect.die(error)))
  })

const share = {
  images: { enabled: true, title: "Star Racer" },
  links: { enabled: true },
  tags: { title: `Star "Racer" <&>`, description: "Race across the galaxy.", site: "@studio" }
}

/** A hosted app with a link to it. */
const setUp = Effect.fnUntraced(function* (document: object = share) {
  const url = yield* addressOfNode
  const { development } = yield* makeTenants
  const target: TestTarget = { url, ...development }
  yield* configure(development, { features: { hosting: true }, share: document })
  yield* deploy(target, { "index.html": "<p>Game", "assets/app.js": "1" })
  const ada = yield* guest(target, "Ada")
  const { body } = yield* play(target, ada, "POST", "share/links", {
    kind: "score",
    score: 3,
    data: { room: "QKMB2P" }
  })
  const link = new URL(String(at(body, "link")))
  return { url, link, path: `${link.pathname}${link.search}`, host: link.host, target }
})

layer(Hosted)("the page of a share link of a hosted app", (it) => {
  it.effect("shows the card to previews, and forwards people with the whole query", () =>
    Effect.gen(function* () {
      const { host, link, path, url } = yield* setUp()
      assert.strictEqual(link.pathname, "/.svc/s")
      const pages = yield* Effect.forEach(Object.values(robots), (agent) =>
        visit(url, host, path, { "user-agent": agent, accept: "*/*", "accept-language": "de" })
      )
      const [page] = pages
      assert.isDefined(page)
      assert.isTrue(pages.every(({ text }) => text === page.text))
      assert.strictEqual(page.status, 200)
      assert.strictEqual(page.headers["cache-control"], "public, max-age=300")
      const ks = link.searchParams.get("ks") ?? ""
      assert.include(
        page.text,
        `property="og:title" content="Star &quot;Racer&quot; &lt;&amp;&gt;"`
      )
      const image = /property="og:image" content="([^"]*)"/.exec(page.text)?.[1] ?? ""
      assert.match(image, new RegExp(`^https?://.*/${ks}\\.png$`))
      assert.include(page.text, `name="twitter:card" content="summary_large_image"`)
      assert.include(page.text, `content="0;url=/?ks=${ks}"`)
      assert.include(page.text, `location.replace("/"+location.search+location.hash)`)
      assert.notInclude(page.text, "QKMB2P")
      const longer = yield* visit(url, host, `${path}&utm_source=a%22%3Cb`)
      assert.include(longer.text, `content="0;url=/?ks=${ks}&amp;utm_source=a%22%3Cb"`)
    })
  )

  it.effect("stays within 2 KB, whatever the config and the query", () =>
    Effect.gen(function* () {
      const wide = "&".repeat(60)
      const tags = { title: wide, description: "&".repeat(120), imageAlt: "&".repeat(120) }
      const { host, path, url } = yield* setUp({ ...share, tags })
      for (const query of ["", `&more=${"&".repeat(180)}`, `&more=${"'".repeat(4000)}`]) {
        const { status, text } = yield* visit(url, host, `${path}${query}`)
        assert.strictEqual(status, 200)
        assert.isAtMost(Buffer.byteLength(text), 2048)
        assert.include(text, "og:image")
      }
    })
  )

  it.effect("forwards from a link that it does not know, and where the tools are off", () =>
    Effect.gen(function* () {
      const { host, path, target, url } = yield* setUp()
      const unknown = yield* visit(url, host, "/.svc/s?ks=nobody")
      assert.include(unknown.text, "og:title")
      assert.include(unknown.text, `content="0;url=/?ks=nobody"`)
      yield* request(`${url}/v1/config`, {
        method: "PUT",
        headers: { "x-svc-key": target.secretKey },
        body: { features: { hosting: true } }
      })
      const plain = yield* visit(url, host, path)
      assert.strictEqual(plain.status, 200)
      assert.notInclude(plain.text, "og:")
      assert.include(plain.text, "<title>test</title>")
    })
  )

  it.effect(
    "answers routes of an app to robots that accept anything, and no script's requests",
    () =>
      Effect.gen(function* () {
        const { host, url } = yield* setUp()
        const robot = { "user-agent": robots.slack, accept: "*/*" }
        assert.strictEqual((yield* visit(url, host, "/level/3", robot)).text, "<p>Game")
        assert.strictEqual((yield* visit(url, host, "/assets/gone.js", robot)).status, 404)
        const script = { accept: "*/*", "sec-fetch-dest": "empty" }
        assert.strictEqual((yield* visit(url, host, "/api/scores", script)).status, 404)
      })
  )

  it.effect("lets pages of other origins show the card", () =>
    Effect.gen(function* () {
      const { host, link, url } = yield* setUp()
      const path = `/.card/${link.searchParams.get("ks")}.png`
      const { headers } = yield* visit(url, host, path)
      assert.strictEqual(headers["cross-origin-resource-policy"], "cross-origin")
    })
  )
})
