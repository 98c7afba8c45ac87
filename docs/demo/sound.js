/** Sounds of the demo games: short tones that the browser makes. They need no files. */

/** Browsers play sound only after the first click, touch or key. */
let context
for (const event of ["pointerup", "keydown"])
  addEventListener(event, () => {
    context ??= new AudioContext()
    context.resume()
  })

const isOn = () => localStorage.getItem("sound") !== "off"

/** Plays tones one after the other, by their frequencies in hertz. */
const play = (frequencies, seconds, volume = 0.12) => {
  if (!isOn() || context?.state !== "running") return
  frequencies.forEach((frequency, n) => {
    const start = context.currentTime + n * seconds
    const tone = new OscillatorNode(context, { type: "triangle", frequency })
    const loudness = new GainNode(context, { gain: volume })
    // A tone that ends at once clicks.
    loudness.gain.setTargetAtTime(0, start + seconds * 0.6, seconds / 6)
    tone.connect(loudness).connect(context.destination)
    tone.start(start)
    tone.stop(start + seconds * 1.5)
  })
}

export const sounds = {
  join: () => play([330, 494], 0.1),
  point: () => play([880, 1319], 0.08),
  pointOfOther: () => play([440], 0.08, 0.05),
  drop: () => play([196], 0.08),
  win: () => play([523, 659, 784, 1047], 0.15),
  lose: () => play([392, 330, 262], 0.18),
  message: () => play([660], 0.06, 0.06)
}

/** Lets a button turn the sounds on and off, for both games and the next visit. */
export const soundButton = (button) => {
  const show = () => {
    button.textContent = isOn() ? "Sound: on" : "Sound: off"
  }
  button.addEventListener("click", () => {
    localStorage.setItem("sound", isOn() ? "off" : "on")
    show()
    sounds.point()
  })
  show()
}
