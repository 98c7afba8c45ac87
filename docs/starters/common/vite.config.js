import { playerBackend } from "@player-backend/cli/vite"

export default { plugins: [playerBackend()], build: { target: "esnext" } }
