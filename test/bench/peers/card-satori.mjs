/**
 * Cards by satori and resvg, in the server's own process: what most projects use. `GET /card/<n>.png` is a
 * card with the score n, drawn each time. Arguments: the port, and a font file of Latin.
 */
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import { Resvg } from "@resvg/resvg-js"
import satori from "satori"

const [, , port, fontFile] = process.argv
const fonts = [{ name: "Inter", data: readFileSync(fontFile), weight: 700, style: "normal" }]

const element = (style, children) => ({ type: "div", props: { style, children } })

const card = (score) =>
  element(
    {
      display: "flex",
      flexDirection: "column",
      justifyContent: "space-between",
      width: 1200,
      height: 600,
      padding: 64,
      background: "#0f1115",
      color: "#ffffff"
    },
    [
      element({ fontSize: 48 }, "Star Racer"),
      element({ display: "flex", flexDirection: "column" }, [
        element({ fontSize: 40 }, "Can you beat"),
        element({ fontSize: 200, color: "#ffcc33" }, score),
        element({ fontSize: 44 }, "Ada")
      ])
    ]
  )

createServer(async (request, response) => {
  if (request.url === "/readyz") return response.end("ok")
  const score = /\d+/.exec(request.url)?.[0] ?? "0"
  const svg = await satori(card(score), { width: 1200, height: 600, fonts })
  response.setHeader("content-type", "image/png")
  response.end(new Resvg(svg).render().asPng())
}).listen(Number(port), "127.0.0.1")
