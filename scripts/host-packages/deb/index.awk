# What is to be known of every package of an index, one line each: name, version, architecture, sha256, repository
# (the variable url), 1 for a part of every system, what it provides. Every system has what is essential or required,
# and apt, which installs the rest.
{
  stanza()
  if (!is_sound()) next
  every = value["Essential"] == "yes" || value["Priority"] == "required" || value["Package"] == "apt"
  sum = "SHA256" in value ? value["SHA256"] : "-"
  provides = "Provides" in value ? value["Provides"] : "-"
  printf "%s\t%s\t%s\t%d\t%s\n", identity(), sum, url, every, provides
}
