/** Runs inside workerd as the binding `svc`: the server API of the environment, without a key. */
const encode = encodeURIComponent

export default (env) => {
  const call = async (method, path, body) => {
    const response = await env.host.fetch(`http://host/api${path}`, {
      method,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { "content-type": "application/json" } })
    })
    const text = await response.text()
    const answer = text === "" ? undefined : JSON.parse(text)
    if (response.ok) return answer
    const {
      code = "unavailable",
      message = `status ${response.status}`,
      details
    } = answer?.error ?? {}
    throw Object.assign(new Error(message), { code, status: response.status, details })
  }
  return { call, encode }
}
