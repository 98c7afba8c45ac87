/** Settings of media: STUN and TURN servers, and the media server of voice calls. */
import { type EnvironmentOf, type Issue, optional, setting } from "./table.ts"
import {
  IpAddress,
  listOf,
  Ports,
  TurnSecret,
  turnSecretMinCharacters,
  TurnUrl,
  whole
} from "./values.ts"

export const turn = {
  urls: setting("SVC_TURN_URLS", listOf(TurnUrl), "")`
    STUN and TURN servers for [peer-to-peer rooms](../guides/peers.md), comma-separated:
    \`turn:turn.example.com:3478\`, \`turns:turn.example.com:5349?transport=tcp\`, \`stun:stun.example.com:3478\`.`,
  port: setting("SVC_TURN_PORT", whole(0, 65_535), 3478)`
    The UDP port of the embedded TURN server, which a single process outside production starts when it is first needed
    and \`SVC_TURN_URLS\` is empty. \`npm run start:two\` starts one, too. \`0\` turns it off.`,
  secret: optional("SVC_TURN_SECRET", TurnSecret)`
    The secret shared with the TURN servers (\`static-auth-secret\` of coturn), ${turnSecretMinCharacters}
    characters or more. Players get credentials derived from it.`
}

export const voice = {
  ports: setting("SVC_VOICE_UDP_PORTS", Ports, 40_500)`
    The UDP ports of the media server for [voice calls](../guides/voice.md#run-the-media-server), such as
    \`40500-40503\`: one for each of its processes, of which a spare one comes with the first call. \`0\` is any free
    port; \`off\` turns the server off.`,
  publicIp: optional("SVC_VOICE_PUBLIC_IP", IpAddress)`
    The IP address at which players reach these ports. The media server needs it in production; elsewhere it names all
    addresses of the machine.`
}

export const turnIssues = (env: EnvironmentOf<typeof turn>): ReadonlyArray<Issue> =>
  env.SVC_TURN_SECRET === undefined && env.SVC_TURN_URLS.some((url) => /^turn/i.test(url))
    ? [{ path: ["SVC_TURN_SECRET"], issue: "must be set together with a turn: URL" }]
    : []
