/** Prints the outcome of checks, one JSON line each, and counts failures. */
export function checks() {
  let failed = 0;
  const check = (name, ok, detail) => {
    if (!ok) failed++;
    console.log(JSON.stringify({ name, ok: Boolean(ok), detail }));
  };

  /** Checks that a request is refused with a code and, if one is given, the reason of the first violation. */
  const refused = async (name, code, request, reason) => {
    try {
      check(name, false, { result: await request() });
    } catch (error) {
      const given = error.data?.violations?.[0]?.reason;
      check(name, error.code === code && (reason === undefined || given === reason), { code: error.code, message: error.message, data: error.data });
    }
  };

  return { check, refused, failures: () => failed };
}
