import "uplot/dist/uPlot.min.css";
import "./app.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { watch } from "./visible";

watch(document.body);
mount(App, { target: document.body });
