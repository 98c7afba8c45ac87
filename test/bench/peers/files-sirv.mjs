/** Files of a folder by sirv, precompressed as the service does. Arguments: the port and the folder. */
import { createServer } from "node:http"
import sirv from "sirv"

const [, , port, folder] = process.argv
const serve = sirv(folder, { etag: true, brotli: true, gzip: true, maxAge: 31_536_000 })

createServer((request, response) => {
  if (request.url === "/readyz") return response.end("ok")
  serve(request, response, () => {
    response.statusCode = 404
    response.end()
  })
}).listen(Number(port), "127.0.0.1")
