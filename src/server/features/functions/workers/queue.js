/** Runs inside workerd as the binding of a queue: messages go to the service, which stores them. */
const toBase64 = (bytes) => new Uint8Array(bytes).toBase64()

const encode = (body, { contentType = "json", delaySeconds } = {}) => {
  if (contentType === "json") return { contentType, body: JSON.stringify(body), delaySeconds }
  if (contentType === "text") return { contentType, body: String(body), delaySeconds }
  if (contentType !== "bytes") throw new TypeError("contentType is json, text or bytes")
  const bytes = ArrayBuffer.isView(body)
    ? body.buffer.slice(body.byteOffset, body.byteOffset + body.byteLength)
    : body
  return { contentType, body: toBase64(bytes), delaySeconds }
}

export default (env) => {
  const store = async (messages) => {
    const response = await env.host("POST", `/queues/${env.name}`, JSON.stringify(messages))
    if (!response.ok)
      throw new Error(`Failed to send to the queue ${env.name}: ${await response.text()}`)
  }
  return {
    send: (body, options) => store([encode(body, options)]),
    sendBatch: (messages, options = {}) =>
      store(Array.from(messages, ({ body, ...own }) => encode(body, { ...options, ...own })))
  }
}
