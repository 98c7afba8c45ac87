export { io } from "socket.io-client"
