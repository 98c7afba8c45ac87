/** The script of `/dev/voice`: a guest of its own in each tab, in one call for all of them. */
// oxlint-disable-next-line import/no-absolute-path -- the service serves it there
import { createClient, memoryStorage } from "/sdk/client.js"

const element = (id) => document.getElementById(id)
const { content: key } = document.querySelector("meta[name=key]")
const client = createClient({ baseUrl: location.origin, key, storage: memoryStorage() })

const say = (text) => (element("status").textContent = text)
const failed = ({ code, message, name }) => say(`${code ?? name}: ${message}`)

/** Joins the channel of a mode; the first tab creates it. */
const enter = (mode) =>
  client.channels.joinOrCreate(`@voice-page-${mode}`, {
    maxMembers: 8,
    voice: mode === "sfu" ? { mode } : true
  })

/** Call of this tab, and whether it has a microphone. */
let call
let hasMicrophone = false

const rows = new Map()

const rowOf = ({ id }) => {
  const known = rows.get(id)
  if (known !== undefined) return known
  const row = document.createElement("li")
  const name = document.createElement("span")
  const level = document.createElement("meter")
  level.max = 0.5
  const volume = document.createElement("input")
  Object.assign(volume, { type: "range", min: 0, max: 1, step: 0.05, value: 1 })
  volume.ariaLabel = `Volume of ${id}`
  volume.addEventListener("input", () => call.setVolume(id, Number(volume.value)))
  row.append(name, level, volume)
  rows.set(id, row)
  return row
}

const show = (own) => {
  const list = element("members")
  for (const id of rows.keys()) {
    if (call.members.every((member) => member.id !== id)) rows.delete(id)
  }
  list.replaceChildren(
    ...call.members.map((member) => {
      const row = rowOf(member)
      const [name, level, volume] = row.children
      const isOwn = member.id === own
      const microphone = member.publishing && member.canSpeak ? "" : " (muted)"
      name.textContent = `${isOwn ? "You" : member.id}${microphone}`
      row.classList.toggle("speaking", call.speaking.includes(member.id))
      level.value = call.levels.get(member.id) ?? 0
      volume.hidden = isOwn
      return row
    })
  )
  element("mute").textContent = call.muted ? "Unmute" : "Mute"
}

const showDevices = async () => {
  const list = element("devices")
  const options = (await call.devices()).map(({ deviceId, label }) => new Option(label, deviceId))
  const { value } = list
  list.replaceChildren(...options)
  if (value !== "") list.value = value
}

const use = async (microphone) => {
  await call.setMicrophone(microphone)
  hasMicrophone = true
  await showDevices()
}

const start = async (mode, microphone) => {
  say("Joining…")
  const player = await client.players.me()
  const channel = await enter(mode)
  call = await channel.voice.join({ microphone })
  hasMicrophone = microphone
  const toggle = (isJoined) => {
    element("join").hidden = isJoined
    element("call").hidden = !isJoined
  }
  toggle(true)
  call.on("change", () => show(player.id))
  call.on("reconnecting", () => say("The call is lost. Joining again…"))
  call.on("reconnected", () => say(""))
  call.on("closed", ({ reason }) => {
    toggle(false)
    channel.leave().catch(failed)
    say(reason === "left" ? "" : `The call has ended: ${reason}`)
  })
  await showDevices()
  show(player.id)
  say("")
}

const on = (id, type, run) =>
  element(id).addEventListener(type, (event) => run(event)?.catch(failed))

on("mute", "click", () => (call.muted && !hasMicrophone ? use(true) : call.mute(!call.muted)))
on("leave", "click", () => call.leave())
on("devices", "change", ({ target }) => use({ deviceId: { exact: target.value } }))
on("join", "submit", (event) => {
  event.preventDefault()
  const { mode } = event.target.elements
  return start(mode.value, event.submitter.value === "on")
})
