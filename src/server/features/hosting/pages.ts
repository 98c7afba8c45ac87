/** Pages of hosts that have no file for a request. */
import type { ServerResponse } from "node:http"

const style =
  ":root{color-scheme:light dark}" +
  "body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:4rem auto;padding:0 1rem}"

const texts = {
  unknown: [404, "No app here", "No app has this address."],
  off: [404, "Hosting is off", "The developer has turned the hosting of this app off."],
  empty: [404, "Nothing deployed", "The app has no live version, or not this one."],
  missing: [404, "Not found", "The app has no such page."],
  malformed: [400, "Bad request", "This is not the address of a page."],
  method: [405, "Method not allowed", "An app's files can only be read."],
  busy: [503, "Busy", "Too many downloads are in progress. Try again in a moment."],
  broken: [503, "Not available", "This file cannot be read at the moment."]
} as const satisfies Record<string, readonly [status: number, title: string, text: string]>

export type Page = keyof typeof texts

/** Answers for a missing script, image or other part of a page: never with a page. */
export const sendMissingAsset = (response: ServerResponse, isHead: boolean): void => {
  const body = "Not found: no version of this app that is live, or was lately, has this file.\n"
  response.writeHead(404, {
    "content-type": "text/plain; charset=utf-8",
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff"
  })
  response.end(isHead ? undefined : body)
}

/** Sends a page. */
export const sendPage = (response: ServerResponse, page: Page, isHead: boolean): void => {
  const [status, title, text] = texts[page]
  const body = Buffer.from(
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title>` +
      `<meta name="viewport" content="width=device-width"><style>${style}</style></head>` +
      `<body><h1>${title}</h1><p>${text}</p></body></html>`
  )
  response.writeHead(status, {
    "content-type": "text/html; charset=utf-8",
    "content-length": body.length,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy":
      "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    ...(status === 405 ? { allow: "GET, HEAD" } : {}),
    ...(status === 503 ? { "retry-after": "1" } : {})
  })
  response.end(isHead ? undefined : body)
}
