// Who searches for an option finds it: lunr takes a leading - for "without this word".
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...others) {
  const query = message && message.query;
  if (typeof query === "string") message = { ...message, query: query.replace(/(^|\s)[-+]+/g, "$1") };
  return post.call(this, message, ...others);
};
