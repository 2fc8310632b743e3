-- For the keys of a full server: one that has a record already takes no more room when it is
-- reserved again. Any other is refused.
if not phase then
  return 'full'
end
