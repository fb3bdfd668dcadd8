import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

// launch starts a browser without a window, with those arguments of the package that are wanted. It
// has no WebGL, with which drawing takes twice the time.
export async function launch(wanted = () => true) {
  chromium.setGraphicsMode = false;
  return puppeteer.launch({
    args: [...chromium.args.filter(wanted), "--no-sandbox"], executablePath: await chromium.executablePath(), headless: "shell",
    timeout: 120000, // other tests run at the same time
  });
}
