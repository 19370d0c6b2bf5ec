# shellcheck shell=bash
# kURL reports the progress of an installation to its vendor. curlew sends nothing: these functions exist for add-ons that call
# them.

# usage: report_addon_start NAME VERSION
report_addon_start() {
  return 0
}

# usage: report_addon_success NAME VERSION
report_addon_success() {
  return 0
}
