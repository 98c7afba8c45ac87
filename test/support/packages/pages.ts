/** Serves the files of a folder to a browser, at `localhost`: there a page may have a service worker. */
import { readFile } from "node:fs/promises"
import { createServer } from "node:http"
import { extname, join } from "node:path"

const types: Readonly<Record<string, string>> = { ".html": "text/html", ".js": "text/javascript" }

export interface Pages {
  readonly url: string
  readonly close: () => Promise<void>
}

export const servePages = async (folder: string): Promise<Pages> => {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://localhost")
    const type = types[extname(pathname)] ?? "application/octet-stream"
    readFile(join(folder, pathname)).then(
      (content) => response.writeHead(200, { "content-type": type }).end(content),
      () => response.writeHead(404).end()
    )
  })
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve))
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("The pages have no port")
  return {
    url: `http://localhost:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      })
  }
}
