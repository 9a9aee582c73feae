// A browser starts no worker from a file, so a page that is opened as a file runs the search in a frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(script) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      const inner = this.frame.contentWindow, element = inner.document.createElement("script");
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      element.src = script;
      element.onload = () => {
        for (const data of this.waiting.splice(0)) this.tell(data);
        this.waiting = null;
      };
      inner.document.documentElement.append(element);
    }

    tell(data) { this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })); }

    postMessage(data) { if (this.waiting) this.waiting.push(data); else this.tell(data); }
  };
}
