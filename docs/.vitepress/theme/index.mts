import "@fontsource-variable/geist/index.css";
import "@fontsource-variable/geist-mono/index.css";
import DefaultTheme from "vitepress/theme-without-fonts";
import "./style.css";

export default DefaultTheme;
